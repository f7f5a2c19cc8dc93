"""What a write tells when it is done."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from daftwrite.sizes import counted, format_size

__all__ = ["ColumnStatistics", "DataFile", "WriteResult"]


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Statistics of one leaf column of a file.

    Attributes:
        values: number of values, nulls included.
        nulls: number of nulls, or None when unknown.
        nans: number of NaN values of a floating-point column, else None.
        nbytes: bytes of the column's encoded chunks.
        lower: the least value in its physical form (days, microseconds, unscaled decimals), or None when unknown.
        upper: the greatest value, likewise.
        repeated: whether the column lies in a list or map.
    """

    values: int
    nulls: int | None
    nans: int | None
    nbytes: int
    lower: Any
    upper: Any
    repeated: bool = False


@dataclass(frozen=True)
class DataFile:
    """One finished data file.

    Attributes:
        path: where it is.
        format: `"parquet"` or `"csv"`.
        rows: number of rows.
        nbytes: its length in bytes.
        partition: partition field to value as text, in the way it stands in the path.
        partition_values: the same values in physical form (days, microseconds, decimals), in the order of the fields.
        statistics: leaf column (dotted path) to its statistics; empty for CSV.
        split_offsets: where row groups start.
    """

    path: str
    format: str
    rows: int
    nbytes: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    partition_values: tuple[Any, ...] = ()
    statistics: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    split_offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class WriteResult:
    """The outcome of a write.

    Attributes:
        target: the table or directory.
        write_id: the id in the names of all files of this write.
        files: the data files with the source's rows, in the order they were begun.
        snapshot_id: the snapshot that the commit made, or None.
        kept_files: new files with rows of the target that an overwrite left, because their old files held others too.
        replaced: locations of the files that an overwrite took out of the target.
        skipped: whether nothing was written because the target exists (`mode="ignore"`).
        seconds: stage to seconds: `read` (waiting for the source), `prepare` (aligning and splitting), `encode` (in
            all threads together), `commit`, and `total` (wall).
        peak_accounted_nbytes: the most bytes that the budget had in use at once.
    """

    target: str
    write_id: str
    files: Sequence[DataFile]
    snapshot_id: int | None = None
    kept_files: Sequence[DataFile] = ()
    replaced: Sequence[str] = ()
    skipped: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)
    peak_accounted_nbytes: int = 0

    @property
    def rows(self) -> int:
        """Number of rows written."""
        return sum(file.rows for file in self.files)

    @property
    def nbytes(self) -> int:
        """Bytes of all data files."""
        return sum(file.nbytes for file in self.files)

    def to_arrow(self) -> pa.Table:
        """The files as a table: path, format, rows, bytes, partition, row_groups."""
        return pa.table(
            {
                "path": pa.array([f.path for f in self.files], pa.string()),
                "format": pa.array([f.format for f in self.files], pa.string()),
                "rows": pa.array([f.rows for f in self.files], pa.int64()),
                "bytes": pa.array([f.nbytes for f in self.files], pa.int64()),
                "partition": pa.array(
                    [list(f.partition.items()) for f in self.files], pa.map_(pa.string(), pa.string())
                ),
                "row_groups": pa.array([len(f.split_offsets) for f in self.files], pa.int32()),
            }
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _headline(self) -> str:
        if self.skipped:
            return f"{self.target}: exists, nothing written"
        snapshot = f", snapshot {self.snapshot_id}" if self.snapshot_id is not None else ""
        count = counted(len(self.files), "file")
        replaced = ""
        if self.replaced:
            kept = sum(file.rows for file in self.kept_files)
            replaced = f", {len(self.replaced):,} replaced" + (f" of which {counted(kept, 'row')} stay" if kept else "")
        return f"{self.target}: {counted(self.rows, 'row')} in {count}, {format_size(self.nbytes)}{replaced}{snapshot}"

    def __repr__(self) -> str:
        lines = [f"WriteResult({self._headline()}"]
        lines += [f"  {f.path}  {f.rows:,} rows  {format_size(f.nbytes)}" for f in self.files[:10]]
        if len(self.files) > 10:
            lines.append(f"  ... and {len(self.files) - 10:,} more")
        return "\n".join(lines) + ")"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.path)}</td><td>{f.rows:,}</td><td>{format_size(f.nbytes)}</td></tr>"
            for f in self.files[:50]
        )
        more = f"<p>and {len(self.files) - 50:,} more</p>" if len(self.files) > 50 else ""
        head = "<tr><th>path</th><th>rows</th><th>size</th></tr>"
        return f"<p>{html.escape(self._headline())}</p><table>{head}{rows}</table>{more}"
