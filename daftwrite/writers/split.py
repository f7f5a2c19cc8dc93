"""Splitting rows by partition: one group id for each row, one stable sort."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import DataError
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.partition_text import physical_values, value_text
from daftwrite.writers.transforms import PartitionField

__all__ = ["PartitionSplitter", "partition_problems", "same_value", "source_type"]

_GROUPS_TAKEN_APART = 256
_NAN_BITS = 0x7FF8000000000000


class PartitionSplitter:
    """Splits aligned tables by partition fields, keeping the order of rows inside each partition.

    Args:
        fields: the partition fields.
        schema: the schema of the tables.
        body: names of the columns that stay in the files.
    """

    def __init__(self, fields: Sequence[PartitionField], schema: pa.Schema, body: Sequence[str]) -> None:
        self._fields = tuple(fields)
        self._sources = [source_type(schema, field.source) for field in fields]
        self._body = list(body)
        self._whole = list(body) == schema.names
        self._keys: dict[tuple[Any, ...], PartitionKey] = {}

    def split(self, table: pa.Table) -> list[tuple[PartitionKey, pa.Table]]:
        """The partitions of a table, in the order of their first rows; a partition's key is always the same object."""
        columns = [_key_column(table, field) for field in self._fields]
        body = table if self._whole else table.select(self._body)
        codes = _codes(columns, table.num_rows)
        if codes is None:
            return [(self._key(columns, 0), body)]
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        starts = np.concatenate(([0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, [len(order)]))
        groups = [(order[start], int(start), int(end)) for start, end in itertools.pairwise(starts)]
        firsts = [int(first) for first, _, _ in groups]
        parts = self._tables(body, order, groups)
        split = [(self._key(columns, first), part) for first, part in zip(firsts, parts, strict=True)]
        return [pair for _, pair in sorted(zip(firsts, split, strict=True), key=lambda item: item[0])]

    def _tables(
        self, body: pa.Table, order: npt.NDArray[np.int64], groups: list[tuple[Any, int, int]]
    ) -> Iterator[pa.Table]:
        # Few partitions are taken one by one, so that flushing one frees its memory; many share one copy.
        if len(groups) <= _GROUPS_TAKEN_APART:
            for _, start, end in groups:
                yield body.take(pa.array(order[start:end]))
            return
        rows = body.take(pa.array(order))
        for _, start, end in groups:
            yield rows.slice(start, end - start)

    def _key(self, columns: list[pa.Array], row: int) -> PartitionKey:
        values = tuple(physical_values(column.slice(row, 1))[0] for column in columns)
        identity = tuple(map(same_value, values))
        if identity not in self._keys:
            texts = tuple(
                (field.name, value_text(field.transform, source, value))
                for field, source, value in zip(self._fields, self._sources, values, strict=True)
            )
            self._keys[identity] = PartitionKey(values, texts)
        return self._keys[identity]


def source_type(schema: pa.Schema, path: str) -> pa.DataType | None:
    """The type of a column, dotted for a nested one (a column of just that name wins); None when there is none."""
    index = schema.get_field_index(path)
    if index >= 0:
        return schema.field(index).type
    first, *rest = path.split(".")
    index = schema.get_field_index(first)
    if index < 0:
        return None
    kind = schema.field(index).type
    for name in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        kind = kind.field(kind.get_field_index(name)).type
    return kind


def partition_problems(fields: Sequence[PartitionField], schema: pa.Schema) -> list[str]:
    """A sentence for each field whose column isn't there or has a type that the transform doesn't take."""
    problems = []
    for field in fields:
        kind = source_type(schema, field.source)
        if kind is None:
            hint = _hint(field.source)
            problems.append(f"column '{field.source}' is not in the source, and partition_by names it{hint}")
        elif pa.types.is_null(kind):
            problems.append(f"column '{field.source}' is of type null; cast it to the type that its values will have")
        elif not field.transform.accepts(kind):
            problems.append(f"column '{field.source}': {field.transform.name} doesn't take {kind}")
    return problems


def _hint(name: str) -> str:
    call = re.fullmatch(r"(year|month|day|hour|bucket|truncate)\((.*)\)", name)
    return "" if call is None else f"; a transform is an object of daftwrite, such as daftwrite.{call[1]}({call[2]!r})"


def _key_column(table: pa.Table, field: PartitionField) -> pa.Array:
    index = table.schema.get_field_index(field.source)
    names: list[str] = []
    if index < 0:
        first, *names = field.source.split(".")
        index = table.schema.get_field_index(first)
    array = _one_array(table.column(index))
    for name in names:
        array = array.flatten()[array.type.get_field_index(name)]
    try:
        return field.transform.apply(array)
    except (pa.ArrowInvalid, OverflowError) as error:
        raise DataError(f"column '{field.source}': can't apply {field.transform}: {error}") from error


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined.combine_chunks() if isinstance(combined, pa.ChunkedArray) else combined


def _codes(columns: list[pa.Array], rows: int) -> npt.NDArray[np.int64] | None:
    """A number for each row that tells its partition, or None when all rows share one."""
    codes: npt.NDArray[np.int64] | None = None
    for column in columns:
        encoded = _hashable(column).dictionary_encode(null_encoding="encode")
        count = len(encoded.dictionary)
        if count <= 1:
            continue
        one = np.asarray(encoded.indices).astype(np.int64)
        if codes is None:
            codes = one
        else:
            _, codes = np.unique(codes * count + one, return_inverse=True)
            codes = codes.astype(np.int64)
    return codes


def _hashable(array: pa.Array) -> pa.Array:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not pa.types.is_floating(array.type):
        return array
    nan = pc.is_nan(array)
    wide = array.cast(pa.float64())
    bits = pa.Array.from_buffers(pa.int64(), len(wide), wide.buffers(), offset=wide.offset)
    return pc.if_else(nan, pa.scalar(_NAN_BITS, pa.int64()), bits)


def same_value(value: Any) -> Any:
    """What two partition values share if they are one partition: floats by their bits, all NaN as one."""
    return ("float", value.hex()) if isinstance(value, float) else value
