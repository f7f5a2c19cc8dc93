"""The contract of a table format, and the options that all of them take."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from daftwrite.errors import ConfigError
from daftwrite.explanation import Explanation
from daftwrite.pipeline.resources import Resources
from daftwrite.plan import (
    DEFAULT_ROW_GROUP_ROWS,
    DEFAULT_ROW_GROUP_SIZE,
    DEFAULT_TARGET_FILE_SIZE,
    Sizes,
    WritePlan,
)
from daftwrite.result import DataFile
from daftwrite.sizes import Size, parse_size
from daftwrite.storage.base import Storage
from daftwrite.storage.ledger import Ledger
from daftwrite.writers.transforms import PartitionField

__all__ = ["Commit", "Landed", "PartitionBy", "Table", "WriteOptions", "no_rows", "partition_fields"]

PartitionBy = str | PartitionField | Sequence[str | PartitionField] | None


@dataclass(frozen=True)
class WriteOptions:
    """Options that every target takes; None leaves a choice to the table's properties or the default.

    Args:
        target_file_size: bytes on disk at which a file ends. Default 512 MiB.
        row_group_size: the most encoded bytes of a row group. Default 128 MiB.
        row_group_rows: the most rows of a row group. Default 1,048,576.
        compression: the codec.
        compression_level: the codec's level.
        coerce_timestamps: `"us"` or `"ms"`: times of a finer unit are cast to it, if exact.
    """

    target_file_size: Size | None = None
    row_group_size: Size | None = None
    row_group_rows: int | None = None
    compression: str | None = None
    compression_level: int | None = None
    coerce_timestamps: str | None = None

    def __post_init__(self) -> None:
        self.sizes()
        if self.coerce_timestamps not in (None, "us", "ms"):
            raise ConfigError(f"coerce_timestamps must be 'us' or 'ms', not {self.coerce_timestamps!r}")

    def sizes(self, defaults: Sizes | None = None) -> Sizes:
        """The sizes asked for, or those of `defaults`."""
        defaults = defaults or Sizes(DEFAULT_TARGET_FILE_SIZE, DEFAULT_ROW_GROUP_SIZE, DEFAULT_ROW_GROUP_ROWS)
        rows = self.row_group_rows if self.row_group_rows is not None else defaults.row_group_rows
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise ConfigError(f"row_group_rows must be a positive number of rows, not {rows!r}")
        return Sizes(
            _size(self.target_file_size, "target_file_size", defaults.target_file_size),
            _size(self.row_group_size, "row_group_size", defaults.row_group_size),
            rows,
        )


def _size(value: Size | None, name: str, default: int) -> int:
    return default if value is None else parse_size(value, name)


def partition_fields(partition_by: PartitionBy) -> tuple[PartitionField, ...]:
    """Partition fields from what `partition_by` takes: columns, transforms, or a list of them.

    Raises:
        ConfigError: when an item is neither, or two fields have one name.
    """
    if partition_by is None:
        return ()
    if isinstance(partition_by, (str, PartitionField)):
        items: list[str | PartitionField] = [partition_by]
    elif isinstance(partition_by, Sequence):
        items = list(partition_by)
    else:
        raise ConfigError(f"partition_by takes columns and transforms, or a list of them, not {partition_by!r}")
    fields = []
    for item in items:
        if isinstance(item, str):
            fields.append(PartitionField(item))
        elif isinstance(item, PartitionField):
            fields.append(item)
        else:
            raise ConfigError(f"partition_by takes columns and transforms such as daftwrite.day('ts'), not {item!r}")
    names = [f.name for f in fields]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"partition_by has two fields named '{name}'")
    return tuple(fields)


async def no_rows() -> AsyncIterator[pa.Table]:
    """What a target keeps whose files are replaced whole."""
    none: tuple[pa.Table, ...] = ()
    for table in none:
        yield table


@dataclass
class Commit:
    """What a commit needs: the plan, the finished files, and the ledger that knows their uploads.

    Attributes:
        plan: the write plan.
        files: files with the source's rows.
        kept_files: files with rows of the target that stay though their own files are replaced.
        ledger: knows the uploads.
        resources: threads.
    """

    plan: WritePlan
    files: Sequence[DataFile]
    kept_files: Sequence[DataFile]
    ledger: Ledger
    resources: Resources = field(repr=False)

    @property
    def all_files(self) -> list[DataFile]:
        """All files that the commit adds."""
        return [*self.files, *self.kept_files]


@dataclass(frozen=True)
class Landed:
    """What a commit did.

    Attributes:
        snapshot_id: the snapshot that it made, where there is one.
        replaced: locations of the files that left the target.
    """

    snapshot_id: int | None
    replaced: tuple[str, ...] = ()


class Table(Protocol):
    """One target of one write."""

    @property
    def name(self) -> str:
        """The table's identifier or the path."""
        ...

    async def check(self, resources: Resources) -> bool:
        """Refuse, before any data is asked for, a target that can't be written.

        Returns:
            Whether there is anything to write: False where the target exists and is to be left alone.
        """
        ...

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Read the target once and plan the write; refuse what it can't keep."""
        ...

    def storage(self, plan: WritePlan, resources: Resources) -> Storage:
        """Where the write's files go."""
        ...

    def refuse_empty(self) -> None:
        """Raise where a source without rows must not be written."""
        ...

    def kept_rows(self, plan: WritePlan, files: Sequence[DataFile], resources: Resources) -> AsyncIterator[pa.Table]:
        """Rows of the target that stay though their files are replaced, in the schema in which they are stored."""
        ...

    async def commit(self, commit: Commit) -> Landed:
        """Make the files part of the target: all of them or none."""
        ...

    async def roll_back(self, resources: Resources) -> None:
        """Undo what `prepare` made, after a failure; the ledger has deleted the files already."""
        ...

    async def explain(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> Explanation:
        """What a write would do, without doing any of it."""
        ...
