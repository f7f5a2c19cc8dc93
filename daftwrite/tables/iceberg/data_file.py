"""From a finished file to Iceberg's `DataFile`."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)

from daftwrite.errors import ConfigError
from daftwrite.result import ColumnStatistics, DataFile

__all__ = ["MetricsModes", "iceberg_data_file", "leaf_fields"]

_DEFAULT = "write.metadata.metrics.default"
_COLUMN = "write.metadata.metrics.column."
_LIMIT = "write.metadata.metrics.max-inferred-column-defaults"


def leaf_fields(schema: Schema) -> dict[str, tuple[NestedField, str]]:
    """Parquet column path to the leaf field stored there and its dotted name in the table."""
    found: dict[str, tuple[NestedField, str]] = {}
    stored = sanitize_column_names(schema)
    for field, original in zip(stored.fields, schema.fields, strict=True):
        _walk(field, original.name, field.name, found)
    named = schema.find_column_name
    return {path: (field, named(field.field_id) or name) for path, (field, name) in found.items()}


def _walk(field: NestedField, name: str, path: str, found: dict[str, tuple[NestedField, str]]) -> None:
    kind = field.field_type
    if isinstance(kind, StructType):
        for child in kind.fields:
            _walk(child, f"{name}.{child.name}", f"{path}.{child.name}", found)
    elif isinstance(kind, ListType):
        _walk(kind.element_field, f"{name}.element", f"{path}.list.element", found)
    elif isinstance(kind, MapType):
        _walk(kind.key_field, f"{name}.key", f"{path}.key_value.key", found)
        _walk(kind.value_field, f"{name}.value", f"{path}.key_value.value", found)
    else:
        found[path] = (field, name)


class MetricsModes:
    """Which statistics the table wants of each column.

    Implements `write.metadata.metrics.default`, `write.metadata.metrics.column.*` and
    `write.metadata.metrics.max-inferred-column-defaults`.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._default = properties.get(_DEFAULT, "truncate(16)")
        try:
            self._limit = int(properties.get(_LIMIT, "100"))
        except ValueError as error:
            raise ConfigError(f"table property {_LIMIT} must be a number, not {properties[_LIMIT]!r}") from error
        _parse_mode(_DEFAULT, self._default)
        for key, value in properties.items():
            if key.startswith(_COLUMN):
                _parse_mode(key, value)

    def mode(self, name: str, position: int) -> tuple[str, int]:
        """The mode of the leaf column at a position, and the length to truncate to."""
        key = _COLUMN + name
        if key in self._properties:
            return _parse_mode(key, self._properties[key])
        if position >= self._limit and _DEFAULT not in self._properties:
            return "none", 0
        return _parse_mode(_DEFAULT, self._default)


def _parse_mode(key: str, text: str) -> tuple[str, int]:
    lowered = text.strip().lower()
    if lowered in ("none", "counts", "full"):
        return lowered, 0
    if lowered.startswith("truncate(") and lowered.endswith(")") and lowered[9:-1].strip().isdigit():
        length = int(lowered[9:-1])
        if length > 0:
            return "truncate", length
    raise ConfigError(f"table property {key} must be none, counts, truncate(N) or full, not {text!r}")


def iceberg_data_file(
    file: DataFile, leaves: Mapping[str, tuple[NestedField, str]], spec_id: int, modes: MetricsModes
) -> IcebergDataFile:
    """Build the `DataFile` that goes into a manifest.

    Args:
        file: the finished file.
        leaves: what `leaf_fields` tells of the schema it was written with.
        spec_id: the partition spec it was written under.
        modes: which statistics the table wants.
    """
    sizes: dict[int, int] = {}
    values: dict[int, int] = {}
    nulls: dict[int, int] = {}
    nans: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for position, (path, (field, name)) in enumerate(leaves.items()):
        statistics = file.statistics.get(path)
        mode, length = modes.mode(name, position)
        if statistics is None or mode == "none":
            continue
        number = field.field_id
        sizes[number] = statistics.nbytes
        values[number] = statistics.values
        if statistics.nulls is not None:
            nulls[number] = statistics.nulls
        if statistics.nans is not None:
            nans[number] = statistics.nans
        if mode != "counts" and not statistics.repeated:
            _add_bounds(statistics, field.field_type, length, number, lower, upper)
    made = IcebergDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=file.path,
        file_format=FileFormat.PARQUET,
        partition=Record(*file.partition_values),
        record_count=file.rows,
        file_size_in_bytes=file.nbytes,
        column_sizes=sizes,
        value_counts=values,
        null_value_counts=nulls,
        nan_value_counts=nans,
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=list(file.split_offsets),
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
    made.spec_id = spec_id
    return made


def _add_bounds(
    statistics: ColumnStatistics,
    kind: IcebergType,
    length: int,
    number: int,
    lower: dict[int, bytes],
    upper: dict[int, bytes],
) -> None:
    if statistics.lower is not None:
        least = _truncate(kind, statistics.lower, length) if length else statistics.lower
        lower[number] = to_bytes(kind, least)
    if statistics.upper is not None:
        greatest = _truncate_up(kind, statistics.upper, length) if length else statistics.upper
        if greatest is not None:
            upper[number] = to_bytes(kind, greatest)


def _truncate(kind: IcebergType, value: Any, length: int) -> Any:
    return value[:length] if isinstance(kind, (StringType, BinaryType)) else value


def _truncate_up(kind: IcebergType, value: Any, length: int) -> Any:
    """An upper bound of at most `length` characters or bytes; None when there is none."""
    if not isinstance(kind, (StringType, BinaryType)) or len(value) <= length:
        return value
    cut = value[:length]
    if isinstance(cut, bytes):
        kept = cut.rstrip(b"\xff")
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    for end in range(len(cut), 0, -1):
        code = ord(cut[end - 1]) + 1
        if code == 0xD800:
            code = 0xE000
        if code <= 0x10FFFF:
            return cut[: end - 1] + chr(code)
    return None


def to_bytes(kind: IcebergType, value: Any) -> bytes:
    """Single-value serialization of a physical value (Appendix D of the specification)."""
    if isinstance(kind, BooleanType):
        return b"\x01" if value else b"\x00"
    if isinstance(kind, (IntegerType, DateType)):
        return struct.pack("<i", value)
    if isinstance(kind, FloatType):
        return struct.pack("<f", value)
    if isinstance(kind, DoubleType):
        return struct.pack("<d", value)
    if isinstance(kind, StringType):
        return str(value).encode()
    if isinstance(kind, (BinaryType, FixedType, UUIDType)):
        return bytes(value)
    if isinstance(kind, DecimalType):
        size = (value + (value < 0)).bit_length() // 8 + 1
        return int(value).to_bytes(size, "big", signed=True)
    return struct.pack("<q", value)
