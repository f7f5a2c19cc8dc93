"""Micro-partitions: bounded pieces of Arrow data on their way through the writer stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.pipeline.budget import Reservation
from daftwrite.pipeline.types import is_list

__all__ = ["MicroPartition", "bounded_slices", "decoded_nbytes"]


@dataclass(slots=True)
class MicroPartition:
    """Aligned rows together with the budget they hold."""

    table: pa.Table
    reservation: Reservation

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def release(self) -> None:
        """Give the budget back."""
        self.reservation.release()


def decoded_nbytes(batch: pa.RecordBatch | pa.Table) -> int:
    """Bytes of a batch once dictionaries and run-end encoding are unpacked."""
    return sum(_column_nbytes(batch.column(i)) for i in range(batch.num_columns))


def _column_nbytes(column: pa.Array | pa.ChunkedArray) -> int:
    if isinstance(column, pa.ChunkedArray):
        return sum(_column_nbytes(chunk) for chunk in column.chunks)
    if pa.types.is_dictionary(column.type):
        return _dictionary_nbytes(column)
    if pa.types.is_run_end_encoded(column.type):
        values = column.values
        return len(column) * max(8, _widest(values))
    if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
        return _text_nbytes(column)
    if pa.types.is_null(column.type):
        return 8 * len(column)
    if pa.types.is_struct(column.type):
        return len(column) // 8 + sum(_column_nbytes(child) for child in column.flatten())
    if is_list(column.type):
        return 5 * len(column) + _column_nbytes(column.flatten())
    return int(column.nbytes)


def _text_nbytes(views: pa.Array) -> int:
    flat = views.cast(pa.large_string() if pa.types.is_string_view(views.type) else pa.large_binary())
    return int(pc.sum(pc.binary_length(flat)).as_py() or 0) + 4 * len(views)


def _dictionary_nbytes(column: pa.DictionaryArray) -> int:
    values = column.dictionary
    if len(values) == 0:
        return 4 * len(column)
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        lengths = pc.binary_length(values).take(column.indices)
        return int(pc.sum(lengths).as_py() or 0) + 4 * len(column)
    return len(column) * max(1, -(-_column_nbytes(values) // len(values)))


def _widest(values: pa.Array) -> int:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        return int(pc.max(pc.binary_length(values)).as_py() or 0) + 4
    return -(-int(values.nbytes) // max(1, len(values)))


def bounded_slices(batch: pa.RecordBatch | pa.Table, limit: int) -> Iterator[pa.RecordBatch | pa.Table]:
    """Cut a batch into consecutive slices of at most `limit` decoded bytes, at least one row each."""
    if batch.num_rows == 0:
        return
    nbytes = decoded_nbytes(batch)
    if nbytes <= limit or batch.num_rows == 1:
        yield batch
        return
    pieces = min(batch.num_rows, -(-nbytes // limit))
    step = -(-batch.num_rows // pieces)
    for start in range(0, batch.num_rows, step):
        yield from bounded_slices(batch.slice(start, step), limit)
