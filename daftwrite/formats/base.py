"""The contract of a file format: encoding apart from assembling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from daftwrite.result import ColumnStatistics

__all__ = ["Assembler", "EncodedRowGroup", "FileSummary", "Format"]


@dataclass(frozen=True)
class EncodedRowGroup:
    """Rows in their encoded form, not yet part of a file.

    Attributes:
        rows: number of rows.
        body: the encoded bytes, in pieces.
        detail: what the format's assembler needs to know besides.
    """

    rows: int
    body: Sequence[pa.Buffer]
    detail: Any = None

    @property
    def nbytes(self) -> int:
        """Encoded bytes."""
        return sum(buffer.size for buffer in self.body)


@dataclass(frozen=True)
class FileSummary:
    """What the assembler knows of a finished file."""

    rows: int
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


class Assembler(Protocol):
    """Puts encoded row groups of one file in order; its calls come one after another."""

    def append(self, encoded: EncodedRowGroup) -> Sequence[pa.Buffer]:
        """The bytes to append to the file for one more row group."""
        ...

    def finish(self) -> tuple[Sequence[pa.Buffer], FileSummary]:
        """The last bytes of the file, and what is in it."""
        ...


class Format(Protocol):
    """A file format with its options; picklable."""

    @property
    def name(self) -> str:
        """`"parquet"` or `"csv"`."""
        ...

    @property
    def extension(self) -> str:
        """The end of file names."""
        ...

    @property
    def extensions(self) -> tuple[str, ...]:
        """How names of files end that are taken for files of this format, whoever wrote them."""
        ...

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The schema that columns are aligned to, or a `SchemaError` naming all that can't be stored."""
        ...

    def encoded_bound(self, schema: pa.Schema, rows: int, nbytes: int) -> int:
        """The most that rows of `nbytes` in memory take while they are encoded and after, without themselves."""
        ...

    def encode(self, table: pa.Table) -> EncodedRowGroup:
        """Encode rows; pure, thread-safe, no I/O."""
        ...

    def assembler(self) -> Assembler:
        """A fresh assembler for one file."""
        ...
