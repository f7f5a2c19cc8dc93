"""Column statistics out of footers, added up over row groups."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import DataError
from daftwrite.formats.parquet.footer import Struct
from daftwrite.pipeline.convert import list_entries
from daftwrite.pipeline.types import is_list
from daftwrite.result import ColumnStatistics

__all__ = ["Leaf", "count_nans", "leaves", "merge", "read_statistics"]

_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = range(8)
_UTF8, _ENUM, _DECIMAL, _JSON = 0, 4, 5, 19
_UNSIGNED = (11, 12, 13, 14)
_REPEATED = 2
_FLOAT16 = 15


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf of the Parquet schema: its dotted path, physical and converted type."""

    path: str
    physical: int
    converted: int | None
    repeated: bool
    half_float: bool

    def decode(self, raw: bytes | None) -> Any:
        """Decode a plain-encoded statistics value to its physical Python value, None when it has no known order."""
        if raw is None or self.half_float or self.physical == _INT96:
            return None
        if self.physical == _BOOLEAN:
            return raw != b"\x00"
        if self.physical in (_INT32, _INT64):
            return int.from_bytes(raw, "little", signed=self.converted not in _UNSIGNED)
        if self.physical in (_FLOAT, _DOUBLE):
            return struct.unpack("<f" if self.physical == _FLOAT else "<d", raw)[0]
        if self.converted == _DECIMAL:
            return int.from_bytes(raw, "big", signed=True)
        if self.converted in (_UTF8, _ENUM, _JSON):
            try:
                return raw.decode()
            except UnicodeDecodeError as error:
                raise DataError(f"column '{self.path}': {raw[:40]!r} is not UTF-8") from error
        return raw


def leaves(metadata: Struct) -> list[Leaf]:
    """The leaf columns of a `FileMetaData`, in the order of column chunks."""
    elements: list[Struct] = metadata[2][1][1]
    found: list[Leaf] = []
    position = 1

    def walk(prefix: str, repeated: bool) -> None:
        nonlocal position
        element = elements[position]
        position += 1
        path = prefix + element[4][1].decode()
        repeated = repeated or _get(element, 3) == _REPEATED
        children = _get(element, 5)
        if children:
            for _ in range(children):
                walk(f"{path}.", repeated)
        else:
            half = _FLOAT16 in (_get(element, 10) or {})
            found.append(Leaf(path, element[1][1], _get(element, 6), repeated, half))

    for _ in range(_get(elements[0], 5) or 0):
        walk("", False)
    return found


def _get(fields: Struct, number: int) -> Any:
    entry = fields.get(number)
    return None if entry is None else entry[1]


def read_statistics(row_group: Struct, columns: list[Leaf], nans: dict[str, int]) -> list[ColumnStatistics]:
    """Statistics of each column chunk of one row group.

    A bound is None when the footer has none, as parquet-cpp leaves out values over 4096 bytes.
    """
    result = []
    for chunk, leaf in zip(row_group[1][1][1], columns, strict=True):
        meta: Struct = chunk[3][1]
        statistics: Struct = _get(meta, 12) or {}
        result.append(
            ColumnStatistics(
                values=meta[5][1],
                nulls=_get(statistics, 3),
                nans=nans.get(leaf.path),
                nbytes=meta[7][1],
                lower=leaf.decode(_get(statistics, 6)),
                upper=leaf.decode(_get(statistics, 5)),
                repeated=leaf.repeated,
            )
        )
    return result


def merge(one: ColumnStatistics, other: ColumnStatistics) -> ColumnStatistics:
    """Statistics of two row groups together; a row group with values but no bound leaves none for the file."""
    lower, upper = one.lower, one.upper
    if _all_null(one):
        lower, upper = other.lower, other.upper
    elif not _all_null(other):
        lower = None if None in (lower, other.lower) else min(lower, other.lower)
        upper = None if None in (upper, other.upper) else max(upper, other.upper)
    return ColumnStatistics(
        values=one.values + other.values,
        nulls=None if one.nulls is None or other.nulls is None else one.nulls + other.nulls,
        nans=None if one.nans is None or other.nans is None else one.nans + other.nans,
        nbytes=one.nbytes + other.nbytes,
        lower=lower,
        upper=upper,
        repeated=one.repeated,
    )


def _all_null(statistics: ColumnStatistics) -> bool:
    return statistics.nulls == statistics.values


def count_nans(table: pa.Table) -> dict[str, int]:
    """NaN values of each floating-point leaf, by its dotted Parquet path."""
    counts: dict[str, int] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if not _has_floats(field.type):
            continue
        for chunk in column.chunks or [pa.nulls(0, field.type)]:
            for path, values in _float_leaves(chunk, field.name):
                nans = pc.sum(pc.is_nan(values)).as_py() or 0
                counts[path] = counts.get(path, 0) + nans
    return counts


def _has_floats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _float_leaves(array: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    kind = array.type
    if pa.types.is_floating(kind):
        yield path, array.cast(pa.float32()) if pa.types.is_float16(kind) else array
    elif pa.types.is_struct(kind):
        for field, values in zip(kind, array.flatten(), strict=True):
            yield from _float_leaves(values, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        entries = list_entries(array).flatten()
        yield from _float_leaves(entries.field(0), f"{path}.key_value.key")
        yield from _float_leaves(entries.field(1), f"{path}.key_value.value")
    elif is_list(kind):
        yield from _float_leaves(array.flatten(), f"{path}.list.element")
