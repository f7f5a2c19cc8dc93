"""Arrow and Iceberg types, both ways."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.schema import Schema, sanitize_column_names
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
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from daftwrite.errors import ConfigError, SchemaError
from daftwrite.pipeline.types import is_list, logical_type, name_problems

__all__ = ["SchemaBuilder", "arrow_schema", "arrow_type", "file_schema", "new_schema"]

pat = pa.types
_FIELD_ID = b"PARQUET:field_id"

_TO_ARROW: dict[type[IcebergType], pa.DataType] = {
    BooleanType: pa.bool_(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float32(),
    DoubleType: pa.float64(),
    DateType: pa.date32(),
    TimeType: pa.time64("us"),
    TimestampType: pa.timestamp("us"),
    TimestamptzType: pa.timestamp("us", "UTC"),
    StringType: pa.string(),
    BinaryType: pa.binary(),
    UUIDType: pa.uuid(),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema that data is aligned to; required fields aren't nullable."""
    return pa.schema([_arrow_field(field, ids=False) for field in schema.fields])


def file_schema(schema: Schema) -> pa.Schema:
    """The schema of data files: field ids, and names that Avro and Parquet readers accept."""
    return pa.schema([_arrow_field(field, ids=True) for field in sanitize_column_names(schema).fields])


def _arrow_field(field: NestedField, *, ids: bool, name: str | None = None) -> pa.Field:
    metadata = {_FIELD_ID: str(field.field_id)} if ids else None
    return pa.field(name or field.name, arrow_type(field.field_type, ids), not field.required, metadata)


def arrow_type(kind: IcebergType, ids: bool = False) -> pa.DataType:
    """The Arrow type of an Iceberg type, with field ids in the metadata of nested fields where they are asked for."""
    if isinstance(kind, StructType):
        return pa.struct([_arrow_field(field, ids=ids) for field in kind.fields])
    if isinstance(kind, ListType):
        return pa.list_(_arrow_field(kind.element_field, ids=ids, name="element"))
    if isinstance(kind, MapType):
        return pa.map_(
            _arrow_field(kind.key_field, ids=ids, name="key"),
            _arrow_field(kind.value_field, ids=ids, name="value"),
        )
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, FixedType):
        return pa.binary(len(kind))
    found = _TO_ARROW.get(type(kind))
    if found is None:
        raise ConfigError(f"Iceberg type {kind} is not supported")
    return found


def new_schema(source: pa.Schema, coerce_timestamps: str | None) -> Schema:
    """The schema of a table made for a source, with fresh field ids.

    Raises:
        SchemaError: when names clash or types have no Iceberg type; all are listed.
    """
    problems = list(name_problems(source.names))
    if not len(source):
        raise SchemaError("the source has no columns")
    builder = SchemaBuilder(coerce_timestamps, problems, itertools.count(1))
    ids = [next(builder.ids) for _ in source]
    fields = [builder.field(field, number, field.name) for field, number in zip(source, ids, strict=True)]
    if problems:
        raise SchemaError("the source can't become an Iceberg table", problems)
    return Schema(*fields)


class SchemaBuilder:
    """Makes Iceberg fields of Arrow's.

    Args:
        coerce_timestamps: as in `plan_projection`.
        problems: gets a sentence for each type that Iceberg doesn't have.
        ids: the field ids to give out.
    """

    def __init__(self, coerce_timestamps: str | None, problems: list[str], ids: Iterator[int]) -> None:
        self.ids = ids
        self._coerce = coerce_timestamps
        self._problems = problems

    def field(self, field: pa.Field, number: int, path: str) -> NestedField:
        """A field with its description, which Arrow keeps as metadata `doc` (or Spark's `comment`)."""
        metadata = field.metadata or {}
        doc = metadata.get(b"doc", metadata.get(b"comment"))
        return NestedField(
            field_id=number,
            name=field.name,
            field_type=self._type(logical_type(field.type), path),
            required=not field.nullable,
            doc=doc.decode() if doc else None,
        )

    def _type(self, kind: pa.DataType, path: str) -> IcebergType:
        if pat.is_struct(kind):
            self._problems += name_problems([f.name for f in kind], f"{path}.")
            if not kind.num_fields:
                self._problems.append(f"column '{path}': a struct without fields has no columns to store")
            ids = [next(self.ids) for _ in kind]
            return StructType(*(self.field(f, number, f"{path}.{f.name}") for f, number in zip(kind, ids, strict=True)))
        if is_list(kind):
            number = next(self.ids)
            value = kind.value_field
            return ListType(number, self._type(value.type, f"{path}.element"), not value.nullable)
        if pat.is_map(kind):
            key, value = next(self.ids), next(self.ids)
            return MapType(
                key,
                self._type(kind.key_type, f"{path}.key"),
                value,
                self._type(kind.item_type, f"{path}.value"),
                not kind.item_field.nullable,
            )
        return self.primitive(kind, path)

    def primitive(self, kind: pa.DataType, path: str) -> IcebergType:
        """The Iceberg type of a type that isn't nested."""
        kind = logical_type(kind)
        if pat.is_integer(kind):
            return _integer(kind)
        if pat.is_floating(kind):
            return DoubleType() if pat.is_float64(kind) else FloatType()
        if pat.is_decimal(kind) and kind.precision <= 38 and kind.scale >= 0:
            return DecimalType(kind.precision, kind.scale)
        if pat.is_time(kind) and self._fits(kind):
            return TimeType()
        if pat.is_timestamp(kind) and self._fits(kind):
            return TimestampType() if kind.tz is None else TimestamptzType()
        if pat.is_fixed_size_binary(kind) and not pat.is_decimal(kind):
            return FixedType(kind.byte_width)
        for iceberg, arrow in _TO_ARROW.items():
            if arrow == kind:
                return iceberg()
        self._problems.append(f"column '{path}': {kind} has no Iceberg type{_hint(kind)}")
        return StringType()

    def _fits(self, kind: pa.DataType) -> bool:
        return bool(kind.unit != "ns" or self._coerce is not None)


def _integer(kind: pa.DataType) -> IcebergType:
    if pat.is_uint64(kind):
        return DecimalType(20, 0)
    return LongType() if pat.is_int64(kind) or pat.is_uint32(kind) else IntegerType()


def _hint(kind: pa.DataType) -> str:
    if pat.is_null(kind):
        return "; cast it to the type that its values will have"
    if (pat.is_timestamp(kind) or pat.is_time(kind)) and kind.unit == "ns":
        return " below version 3; pass coerce_timestamps='us' to store exact microseconds"
    return ""
