"""Partition transforms of the Iceberg specification, on Arrow arrays.

Results are physical values: years, months, days and hours are counted from 1970-01-01 and round down, also before it.
See "Partition Transforms" and "Appendix B: 32-bit Hash Requirements" of the Iceberg table specification.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import mmh3
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import ConfigError

__all__ = [
    "PartitionField",
    "Transform",
    "bucket",
    "day",
    "hour",
    "identity",
    "month",
    "parse_partition_field",
    "truncate",
    "year",
]

pat = pa.types
_TEMPORAL = {"year": "Y", "month": "M", "day": "D", "hour": "h"}
_PARAMETERS = ("bucket", "truncate")


@dataclass(frozen=True, slots=True)
class Transform:
    """A transform with its parameter: `identity`, `bucket`, `truncate`, `year`, `month`, `day`, `hour` or `void`."""

    name: str
    parameter: int | None = None

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}[{self.parameter}]"

    def accepts(self, kind: pa.DataType) -> bool:
        """Whether the specification defines this transform for a source type."""
        if self.name == "void":
            return True
        if self.name == "identity":
            return not pat.is_nested(kind) and not pat.is_null(kind)
        if self.name == "hour":
            return bool(pat.is_timestamp(kind))
        if self.name in _TEMPORAL:
            return bool(pat.is_timestamp(kind) or pat.is_date(kind))
        text = pat.is_string(kind) or pat.is_binary(kind)
        if self.name == "truncate":
            return bool(pat.is_signed_integer(kind) or pat.is_decimal(kind) or text)
        return bool(
            text
            or (pat.is_integer(kind) and kind != pa.uint64())
            or pat.is_decimal(kind)
            or pat.is_date(kind)
            or pat.is_time(kind)
            or pat.is_timestamp(kind)
            or pat.is_fixed_size_binary(kind)
            or kind == pa.uuid()
        )

    def apply(self, array: pa.Array) -> pa.Array:
        """Transform an array whose type is accepted; nulls stay null."""
        if self.name == "void":
            return pa.nulls(len(array), array.type)
        if self.name == "identity":
            return array
        if self.name in _TEMPORAL:
            return _temporal(array, _TEMPORAL[self.name])
        assert self.parameter is not None
        if self.name == "bucket":
            return _bucket(array, self.parameter)
        return _truncate(array, self.parameter)


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A column, or a transform of one, to partition by.

    Attributes:
        source: the column, dotted for a nested one.
        transform: what is done to it.
        name: the name of the partition; by default that of the column for `identity`, else with the transform behind.
    """

    source: str
    transform: Transform = Transform("identity")
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", _default_name(self.source, self.transform))

    def __str__(self) -> str:
        if self.transform.name == "identity":
            return self.source
        inner = self.source if self.transform.parameter is None else f"{self.transform.parameter}, {self.source}"
        return f"{self.transform.name}({inner})"


def _default_name(source: str, transform: Transform) -> str:
    if transform.name == "identity":
        return source
    suffix = {"void": "null", "truncate": "trunc"}.get(transform.name, transform.name)
    return f"{source}_{suffix}"


def identity(column: str) -> PartitionField:
    """Partition by the values of a column."""
    return PartitionField(column)


def year(column: str) -> PartitionField:
    """Partition by the year of a date or timestamp."""
    return PartitionField(column, Transform("year"))


def month(column: str) -> PartitionField:
    """Partition by the month of a date or timestamp."""
    return PartitionField(column, Transform("month"))


def day(column: str) -> PartitionField:
    """Partition by the day of a date or timestamp."""
    return PartitionField(column, Transform("day"))


def hour(column: str) -> PartitionField:
    """Partition by the hour of a timestamp."""
    return PartitionField(column, Transform("hour"))


def bucket(buckets: int, column: str) -> PartitionField:
    """Partition by a hash of a column.

    Args:
        buckets: number of buckets, at least 1.
        column: an integer, decimal, date, time, timestamp, string, uuid or binary column.
    """
    return PartitionField(column, Transform("bucket", _positive(buckets, "bucket")))


def truncate(width: int, column: str) -> PartitionField:
    """Partition by a column's value cut to a width.

    Args:
        width: characters of a string, bytes of a binary, or the step to which integers and decimals are rounded down.
        column: an integer, decimal, string or binary column.
    """
    return PartitionField(column, Transform("truncate", _positive(width, "truncate")))


def _positive(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ConfigError(f"{name} takes a positive number and a column, not {value!r}")
    return value


_CALL = re.compile(r"\s*(\w+)\s*\(\s*(?:(\d+)\s*,\s*)?([^()]+?)\s*\)\s*")


def parse_partition_field(text: str) -> PartitionField:
    """Read `"carrier"`, `"month(time_hour)"` or `"bucket(16, id)"`.

    Raises:
        ConfigError: when the transform is unknown or its number is missing.
    """
    match = _CALL.fullmatch(text)
    if match is None:
        return PartitionField(text.strip())
    name, number, column = match.groups()
    if (name in _TEMPORAL or name in ("identity", "void")) and number is None:
        return PartitionField(column, Transform(name))
    if name in _PARAMETERS and number is not None:
        return PartitionField(column, Transform(name, _positive(int(number), name)))
    raise ConfigError(
        f"can't read partition field {text!r}: expected a column, year(c), month(c), day(c), hour(c), "
        "bucket(N, c) or truncate(N, c)"
    )


def _to_numpy(array: pa.Array) -> npt.NDArray[np.int64]:
    """Physical 64-bit integers, 0 for nulls."""
    kind = array.type
    if pat.is_date32(kind) or pat.is_time32(kind):
        array = array.cast(pa.int32())
    if array.type != pa.int64():
        array = array.cast(pa.int64())
    return np.asarray(pc.fill_null(array, 0))


def _from_numpy(values: npt.NDArray[np.int64], like: pa.Array, kind: pa.DataType) -> pa.Array:
    mask = np.asarray(pc.is_null(like)) if like.null_count else None
    return pa.array(values, pa.int64(), mask=mask).cast(kind)


def _temporal(array: pa.Array, unit: str) -> pa.Array:
    source = "D" if pat.is_date(array.type) else array.type.unit
    values = _to_numpy(array).view(f"datetime64[{source}]")
    floored = values.astype(f"datetime64[{unit}]").astype(np.int64)
    return _from_numpy(floored, array, pa.int32())


def _micros(array: pa.Array) -> npt.NDArray[np.int64]:
    values = _to_numpy(array)
    unit = getattr(array.type, "unit", "us")
    scale = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": -1_000}[unit]
    return values // -scale if scale < 0 else values * scale


def _bucket(array: pa.Array, buckets: int) -> pa.Array:
    kind = array.type
    if pat.is_timestamp(kind) or pat.is_time(kind):
        hashes = _hash_longs(_micros(array))
    elif pat.is_integer(kind) or pat.is_date(kind):
        hashes = _hash_longs(_to_numpy(array))
    else:
        return _per_value(array, lambda value: (mmh3.hash(value, signed=False) & 0x7FFFFFFF) % buckets, pa.int32())
    numbers = (hashes & np.uint32(0x7FFFFFFF)).astype(np.int64) % buckets
    return _from_numpy(numbers, array, pa.int32())


def _per_value(array: pa.Array, work: Callable[[bytes], int], kind: pa.DataType) -> pa.Array:
    """Apply a function of bytes to each distinct value."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    encoded = array.dictionary_encode()
    results = [work(_hashed_bytes(value)) for value in encoded.dictionary.to_pylist()]
    return pa.array(results, kind).take(encoded.indices)


def _hashed_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    unscaled = _unscaled(value)
    size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
    return unscaled.to_bytes(size, "big", signed=True)


def _unscaled(value: object) -> int:
    sign, digits, _ = value.as_tuple()  # type: ignore[attr-defined]  # a Decimal, by the type of the array
    number = int("".join(map(str, digits)))
    return -number if sign else number


def _hash_longs(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Murmur3, x86 32-bit, seed 0, of each value as eight little-endian bytes."""
    words = values.view(np.uint64)
    state = np.zeros(len(values), np.uint32)
    for word in (
        (words & np.uint64(0xFFFFFFFF)).astype(np.uint32),
        (words >> np.uint64(32)).astype(np.uint32),
    ):
        mixed = _rotate(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        state = _rotate(state ^ mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    state ^= np.uint32(8)
    state ^= state >> np.uint32(16)
    state *= np.uint32(0x85EBCA6B)
    state ^= state >> np.uint32(13)
    state *= np.uint32(0xC2B2AE35)
    state ^= state >> np.uint32(16)
    return state


def _rotate(values: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (values << np.uint32(bits)) | (values >> np.uint32(32 - bits))


def _truncate(array: pa.Array, width: int) -> pa.Array:
    kind = array.type
    if pat.is_string(kind):
        return pc.utf8_slice_codeunits(array, 0, width)
    if pat.is_binary(kind):
        return pc.binary_slice(array, 0, width)
    if pat.is_decimal(kind):
        return _truncate_decimals(array, width)
    values = _to_numpy(array)
    cut = values - np.mod(values, width)
    if np.any(cut > values):
        raise pa.ArrowInvalid("a value is too close to the least one to be rounded down")
    return _from_numpy(cut, array, kind)


def _truncate_decimals(array: pa.Array, width: int) -> pa.Array:
    encoded = array.dictionary_encode()
    scale = array.type.scale
    cut = []
    for value in encoded.dictionary.to_pylist():
        unscaled = _unscaled(value)
        cut.append(type(value)((int(unscaled - unscaled % width < 0), _digits(unscaled - unscaled % width), -scale)))
    return pa.array(cut, array.type).take(encoded.indices)


def _digits(number: int) -> tuple[int, ...]:
    return tuple(map(int, str(abs(number))))
