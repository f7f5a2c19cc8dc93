"""The write plan: all that the writer stack needs, frozen and picklable."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from daftwrite.formats.base import Format
from daftwrite.pipeline.align import Projection
from daftwrite.pipeline.resources import Resources
from daftwrite.storage.local import Staging
from daftwrite.writers.base import FileNaming, Limits
from daftwrite.writers.transforms import PartitionField

__all__ = ["Sizes", "WritePlan", "new_write_id"]

DEFAULT_TARGET_FILE_SIZE = 512 << 20
DEFAULT_ROW_GROUP_SIZE = 128 << 20
DEFAULT_ROW_GROUP_ROWS = 1 << 20
# pyarrow begins another row group by itself after so many rows.
_MOST_ROW_GROUP_ROWS = 64 << 20


def new_write_id() -> str:
    """A fresh write id: time-ordered, 32 hexadecimal digits."""
    return f"{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


@dataclass(frozen=True)
class Sizes:
    """Sizes asked for, in bytes and rows."""

    target_file_size: int = DEFAULT_TARGET_FILE_SIZE
    row_group_size: int = DEFAULT_ROW_GROUP_SIZE
    row_group_rows: int = DEFAULT_ROW_GROUP_ROWS

    def limits(self, resources: Resources) -> Limits:
        """The limits of one write within its resources.

        A row group is at most a quarter of its file, so that the last one can be cut to what remains. Its share of the
        budget leaves room for one encoding in each thread, one that fills, and one that waits, each with the worst case
        of its encoded bytes.
        """
        share = resources.budget.limit // (2 * (resources.threads + 2))
        return Limits(
            file_nbytes=self.target_file_size,
            row_group_nbytes=max(1, min(self.row_group_size, self.target_file_size // 4)),
            row_group_rows=min(self.row_group_rows, _MOST_ROW_GROUP_ROWS),
            row_group_arrow_nbytes=max(1, share),
        )


@dataclass(frozen=True)
class WritePlan:
    """How one write goes.

    Attributes:
        target: the table or directory, for messages and the result.
        write_id: names the write in its file names, its ledger and its commit.
        projection: turns the source's columns into the stored ones.
        partitioning: the partition fields; their sources are columns of the projection's result.
        body: the columns that stay in the files.
        format: the file format with its options.
        sizes: sizes of files and row groups.
        naming: gives files their paths.
        publish_on_close: whether files are published one by one as they close, or all at the end.
        write_empty_file: whether a write without rows makes one file without rows.
        staging: where a new directory lies until it is renamed, or None.
        details: what only the table format needs, for its commit.
    """

    target: str
    write_id: str
    projection: Projection
    partitioning: tuple[PartitionField, ...]
    body: tuple[str, ...]
    format: Format
    sizes: Sizes
    naming: FileNaming
    publish_on_close: bool
    write_empty_file: bool
    staging: Staging | None = None
    details: Any = field(default=None)

    @property
    def stored_schema(self) -> pa.Schema:
        """The schema of the rows after alignment."""
        return self.projection.stored
