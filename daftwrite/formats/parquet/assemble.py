"""Row groups that were encoded as files of their own become one file."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from daftwrite.errors import WriteError
from daftwrite.formats.base import EncodedRowGroup, FileSummary
from daftwrite.formats.parquet.footer import I16, I64, LIST, STRUCT, Struct, write_struct
from daftwrite.formats.parquet.statistics import leaves, merge
from daftwrite.result import ColumnStatistics

__all__ = ["MAGIC", "ParquetAssembler", "RowGroupFooter"]

MAGIC = b"PAR1"
_CHUNK_OFFSETS = (2, 4, 6)
_META_OFFSETS = (9, 10, 11, 14)


class RowGroupFooter:
    """The footer of a file that holds one row group, or none, and the statistics read from it."""

    def __init__(self, metadata: Struct, statistics: list[ColumnStatistics]) -> None:
        self.metadata = metadata
        self.statistics = statistics

    @property
    def row_groups(self) -> list[Struct]:
        """The row groups, at most one."""
        groups: list[Struct] = self.metadata[4][1][1]
        return groups


class ParquetAssembler:
    """Appends the column chunks of row groups and rewrites the offsets in their footers."""

    def __init__(self) -> None:
        self._first: Struct | None = None
        self._row_groups: list[Struct] = []
        self._statistics: list[ColumnStatistics] | None = None
        self._rows = 0
        self._position = 0

    def append(self, encoded: EncodedRowGroup) -> Sequence[pa.Buffer]:
        """The bytes to append for one more row group; see `Assembler.append`."""
        footer: RowGroupFooter = encoded.detail
        pieces: list[pa.Buffer] = []
        if self._first is None:
            self._first = footer.metadata
            self._schema = write_struct({2: footer.metadata[2]})
            self._position = len(MAGIC)
            pieces.append(pa.py_buffer(MAGIC))
        elif write_struct({2: footer.metadata[2]}) != self._schema:
            raise WriteError("row groups of one file have different Parquet schemas")
        for row_group in footer.row_groups:
            self._shift(row_group, self._position - len(MAGIC))
            self._row_groups.append(row_group)
            found = footer.statistics
            before = self._statistics
            self._statistics = found if before is None else list(map(merge, before, found))
        self._rows += encoded.rows
        self._position += encoded.nbytes
        pieces += encoded.body
        return pieces

    def finish(self) -> tuple[Sequence[pa.Buffer], FileSummary]:
        """The footer, and what is in the file; see `Assembler.finish`."""
        if self._first is None:
            raise WriteError("a Parquet file needs at least one row group to take its schema from")
        metadata = dict(self._first)
        metadata[3] = (I64, self._rows)
        metadata[4] = (LIST, (STRUCT, self._row_groups))
        footer = write_struct(metadata)
        tail = footer + struct.pack("<I", len(footer)) + MAGIC
        paths = [leaf.path for leaf in leaves(metadata)]
        summary = FileSummary(
            rows=self._rows,
            statistics=dict(zip(paths, self._statistics or (), strict=False)),
            split_offsets=tuple(_start(group) for group in self._row_groups),
        )
        return [pa.py_buffer(tail)], summary

    def _shift(self, row_group: Struct, distance: int) -> None:
        for chunk in row_group[1][1][1]:
            _add(chunk, _CHUNK_OFFSETS, distance)
            _add(chunk[3][1], _META_OFFSETS, distance)
        _add(row_group, (5,), distance)
        if 7 in row_group:
            row_group[7] = (I16, min(len(self._row_groups), 32767))


def _add(fields: Struct, numbers: tuple[int, ...], distance: int) -> None:
    for number in numbers:
        kind, offset = fields.get(number, (I64, 0))
        if offset > 0:
            fields[number] = (kind, offset + distance)


def _start(row_group: Struct) -> int:
    first: Struct = row_group[1][1][1][0][3][1]
    data_page: int = first[9][1]
    dictionary: int = first.get(11, (I64, 0))[1]
    return dictionary if 0 < dictionary < data_page else data_page
