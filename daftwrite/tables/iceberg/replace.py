"""What an overwrite replaces: whole files, and files of which some rows stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from daftwrite.result import DataFile
from daftwrite.tables.iceberg.filters import RowFilter
from daftwrite.tables.iceberg.rows import RowReader
from daftwrite.tables.iceberg.scan import LiveFile, live_files, may_match, surely_matches
from daftwrite.writers.split import PartitionSplitter, same_value
from daftwrite.writers.transforms import PartitionField

__all__ = ["FilterChoice", "PartitionChoice", "Replacement", "RowChoice"]

_ROW = "\0row"


class RowChoice(Protocol):
    """Which rows of a table an overwrite replaces."""

    @property
    def everything(self) -> bool:
        """Whether all of them, so that no file need be read."""
        ...

    def candidates(self, metadata: TableMetadata, io: FileIO, snapshot: Snapshot | None) -> list[LiveFile]:
        """The files that may hold such rows."""
        ...

    def whole(self, file: IcebergDataFile) -> bool | None:
        """Whether metadata tells that all rows of a file are (True) or none is (False)."""
        ...

    def may_match(self, file: IcebergDataFile) -> bool:
        """Whether a file that was added meanwhile may hold such rows."""
        ...

    @property
    def columns(self) -> set[int]:
        """The columns needed to tell for a row."""
        ...

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """Which rows are."""
        ...


class FilterChoice:
    """The rows that a filter matches.

    Args:
        condition: the filter; None for all rows.
    """

    def __init__(self, condition: RowFilter | None) -> None:
        self._condition = condition

    @property
    def everything(self) -> bool:
        """See `RowChoice.everything`."""
        return self._condition is None or self._condition.everything

    def candidates(self, metadata: TableMetadata, io: FileIO, snapshot: Snapshot | None) -> list[LiveFile]:
        """See `RowChoice.candidates`."""
        return live_files(metadata, io, snapshot, None if self.everything else self._condition)

    def whole(self, file: IcebergDataFile) -> bool | None:
        """See `RowChoice.whole`."""
        if self._condition is None or surely_matches(file, self._condition):
            return True
        return None

    def may_match(self, file: IcebergDataFile) -> bool:
        """See `RowChoice.may_match`."""
        return self._condition is None or may_match(file, self._condition)

    @property
    def columns(self) -> set[int]:
        """See `RowChoice.columns`."""
        return set() if self._condition is None else self._condition.field_ids

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """See `RowChoice.mask`."""
        assert self._condition is not None
        return self._condition.mask(rows)


class PartitionChoice:
    """The rows that lie in one of the partitions that a write has files in, whatever spec they were written under.

    Args:
        files: the write's files.
        fields: the partition fields; their sources are named as in the table.
        spec_id: the spec that they are of.
        columns: ids of the partition fields' source columns.
        schema: the Arrow schema of the table's rows.
    """

    def __init__(
        self,
        files: Sequence[DataFile],
        fields: Sequence[PartitionField],
        spec_id: int,
        columns: set[int],
        schema: pa.Schema,
    ) -> None:
        self._touched = {_identity(file.partition_values) for file in files}
        self._spec_id = spec_id
        self._columns = columns
        self._splitter = PartitionSplitter(fields, schema, [_ROW])

    everything = False

    def candidates(self, metadata: TableMetadata, io: FileIO, snapshot: Snapshot | None) -> list[LiveFile]:
        """See `RowChoice.candidates`."""
        return [live for live in live_files(metadata, io, snapshot, None) if self.whole(live.file) is not False]

    def whole(self, file: IcebergDataFile) -> bool | None:
        """See `RowChoice.whole`."""
        if file.spec_id != self._spec_id:
            return None
        values = tuple(file.partition[position] for position in range(len(file.partition)))
        return _identity(values) in self._touched

    def may_match(self, file: IcebergDataFile) -> bool:
        """See `RowChoice.may_match`."""
        return self.whole(file) is not False

    @property
    def columns(self) -> set[int]:
        """See `RowChoice.columns`."""
        return self._columns

    def mask(self, rows: pa.Table) -> pa.ChunkedArray:
        """See `RowChoice.mask`."""
        numbered = rows.append_column(_ROW, pa.array(np.arange(rows.num_rows)))
        chosen = np.zeros(rows.num_rows, dtype=bool)
        for key, part in self._splitter.split(numbered):
            if _identity(key.values) in self._touched:
                chosen[np.asarray(part.column(0))] = True
        return pa.chunked_array([pa.array(chosen)])


def _identity(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(same_value(value) for value in values)


@dataclass
class Replacement:
    """The files that an overwrite takes out of a table.

    Attributes:
        metadata: the table when it was planned.
        io: reads its files.
        snapshot: the snapshot that was looked at, or None.
        choice: which rows are replaced.
        to_stored: gives rows the schema in which they are written.
    """

    metadata: TableMetadata
    io: FileIO
    snapshot: Snapshot | None
    choice: RowChoice
    to_stored: Callable[[pa.Table], pa.Table]

    def __post_init__(self) -> None:
        self._whole: list[IcebergDataFile] = []
        self._open: list[LiveFile] = []
        for live in self.choice.candidates(self.metadata, self.io, self.snapshot):
            if self.choice.everything or self.choice.whole(live.file):
                self._whole.append(live.file)
            else:
                self._open.append(live)
        self._cut: list[LiveFile] = []

    @property
    def undecided(self) -> list[IcebergDataFile]:
        """Files of which only their rows can tell whether they are replaced."""
        return [live.file for live in self._open]

    @property
    def removed(self) -> frozenset[str]:
        """Locations of the files that leave the table; complete once `kept` has ended."""
        return frozenset(file.file_path for file in [*self._whole, *(live.file for live in self._cut)])

    def kept(self) -> Iterator[pa.Table]:
        """The rows that stay of files that hold both; decides file by file, reading only what that takes first."""
        reader = RowReader(self.metadata, self.io)
        while self._open:
            live = self._open.pop(0)
            matching = rows = 0
            for part in reader.read(live, self.choice.columns):
                rows += part.num_rows
                matching += pc.sum(self.choice.mask(part)).as_py() or 0
            if not matching:
                continue
            if matching == rows:
                self._whole.append(live.file)
                continue
            self._cut.append(live)
            for part in reader.read(live):
                stays = part.filter(pc.invert(self.choice.mask(part)))
                if stays.num_rows:
                    yield self.to_stored(stays)
