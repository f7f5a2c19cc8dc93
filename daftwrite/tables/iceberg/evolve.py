"""Schemas that move with a write: union by name, replacement, and what to do when the table's moved meanwhile."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

from daftwrite.errors import SchemaError
from daftwrite.pipeline.types import conversion_problems, is_list, logical_type
from daftwrite.tables.iceberg.types import SchemaBuilder, arrow_type

__all__ = ["SchemaMoved", "graft", "merged_schema", "promotes", "replaced_schema", "schema_problem"]


class SchemaMoved(Exception):
    """Raised when a planned schema doesn't go with what the table's schema has become."""


def promotes(before: IcebergType, now: IcebergType) -> bool:
    """Whether the specification allows a column's type to change so ("Schema Evolution", versions 1 and 2)."""
    if isinstance(before, DecimalType) and isinstance(now, DecimalType):
        return before.scale == now.scale and before.precision < now.precision
    return (isinstance(before, IntegerType) and isinstance(now, LongType)) or (
        isinstance(before, FloatType) and isinstance(now, DoubleType)
    )


def merged_schema(current: Schema, source: pa.Schema, last_id: int, coerce_timestamps: str | None) -> Schema:
    """The union by name of a table's schema and a source's.

    New columns come last, nested ones too, and are optional; a type is promoted where the source's needs it and the
    specification allows it.

    Args:
        current: the table's schema.
        source: the data's schema.
        last_id: the last field id that the table ever assigned.
        coerce_timestamps: as in `plan_projection`.

    Raises:
        SchemaError: when names clash or a new column has no Iceberg type; all are listed.
    """
    problems: list[str] = []
    merger = _Merger(SchemaBuilder(coerce_timestamps, problems, itertools.count(last_id + 1)))
    fields = merger.fields(current.fields, list(source), "")
    if problems:
        raise SchemaError("the source's new columns can't be added to the table", problems)
    return Schema(*fields, schema_id=current.schema_id, identifier_field_ids=list(current.identifier_field_ids))


class _Merger:
    def __init__(self, builder: SchemaBuilder) -> None:
        self._builder = builder

    def fields(self, current: Sequence[NestedField], source: list[pa.Field], prefix: str) -> list[NestedField]:
        by_name = {field.name: field for field in source}
        folded = {field.name.casefold() for field in current}
        merged = [
            self._field(field, by_name[field.name], prefix) if field.name in by_name else field for field in current
        ]
        known = {field.name for field in current}
        # A name that differs only in case is left for the alignment to refuse.
        new = [field for field in source if field.name not in known and field.name.casefold() not in folded]
        ids = [next(self._builder.ids) for _ in new]
        for field, number in zip(new, ids, strict=True):
            made = self._builder.field(field, number, f"{prefix}{field.name}")
            merged.append(made.model_copy(update={"required": False}))
        return merged

    def _field(self, field: NestedField, source: pa.Field, prefix: str) -> NestedField:
        kind = self._type(field.field_type, source.type, f"{prefix}{field.name}")
        return field if kind == field.field_type else field.model_copy(update={"field_type": kind})

    def _type(self, kind: IcebergType, source: pa.DataType, path: str) -> IcebergType:
        source = logical_type(source)
        if isinstance(kind, StructType) and pa.types.is_struct(source):
            return StructType(*self.fields(kind.fields, list(source), f"{path}."))
        if isinstance(kind, ListType) and is_list(source):
            element = self._type(kind.element_type, source.value_type, f"{path}.element")
            return ListType(kind.element_id, element, kind.element_required)
        if isinstance(kind, MapType) and pa.types.is_map(source):
            value = self._type(kind.value_type, source.item_type, f"{path}.value")
            return MapType(kind.key_id, kind.key_type, kind.value_id, value, kind.value_required)
        if kind.is_primitive:
            return self._promoted(kind, source, path)
        return kind

    def _promoted(self, kind: IcebergType, source: pa.DataType, path: str) -> IcebergType:
        stored = arrow_type(kind)
        # An unsigned type fits a signed one of its width only as long as its values do.
        unsigned = pa.types.is_unsigned_integer(source) and source.bit_width == getattr(stored, "bit_width", 0)
        if not unsigned and not any(conversion_problems(source, stored, path, None)):
            return kind
        wanted = SchemaBuilder(None, [], itertools.count()).primitive(source, path)
        if isinstance(kind, DecimalType) and isinstance(wanted, DecimalType) and wanted.scale <= kind.scale:
            digits = max(kind.precision, wanted.precision - wanted.scale + kind.scale)
            wanted = DecimalType(min(digits, 38), kind.scale)
        return wanted if promotes(kind, wanted) else kind


def replaced_schema(current: Schema, source: Schema, last_id: int) -> Schema:
    """A source's schema in place of the table's: columns of the same name and type keep their field ids.

    Args:
        current: the table's schema.
        source: the schema that the source would have as a table of its own.
        last_id: the last field id that the table ever assigned.
    """
    return Schema(
        *_renumbered(current.fields, source.fields, itertools.count(last_id + 1)), schema_id=current.schema_id
    )


def _renumbered(
    current: Sequence[NestedField], source: Sequence[NestedField], ids: Iterator[int]
) -> Iterator[NestedField]:
    by_name = {field.name: field for field in current}
    for field in source:
        known = by_name.get(field.name)
        if known is not None and _same_kind(known.field_type, field.field_type):
            yield field.model_copy(
                update={
                    "field_id": known.field_id,
                    "field_type": _renumbered_type(known.field_type, field.field_type, ids),
                }
            )
        else:
            number = next(ids)
            yield field.model_copy(
                update={"field_id": number, "field_type": _renumbered_type(None, field.field_type, ids)}
            )


def _same_kind(one: IcebergType, other: IcebergType) -> bool:
    return one == other or promotes(one, other) or (not one.is_primitive and type(one) is type(other))


def _renumbered_type(current: IcebergType | None, kind: IcebergType, ids: Iterator[int]) -> IcebergType:
    if isinstance(kind, StructType):
        known = current.fields if isinstance(current, StructType) else ()
        return StructType(*_renumbered(known, kind.fields, ids))
    if isinstance(kind, ListType):
        same = isinstance(current, ListType) and _same_kind(current.element_type, kind.element_type)
        inner = current.element_type if isinstance(current, ListType) and same else None
        number = current.element_id if isinstance(current, ListType) and same else next(ids)
        return ListType(number, _renumbered_type(inner, kind.element_type, ids), kind.element_required)
    if isinstance(kind, MapType):
        same = isinstance(current, MapType) and current.key_type == kind.key_type
        same = same and isinstance(current, MapType) and _same_kind(current.value_type, kind.value_type)
        known_map = current if isinstance(current, MapType) and same else None
        key_id, value_id = (known_map.key_id, known_map.value_id) if known_map else (next(ids), next(ids))
        return MapType(
            key_id,
            _renumbered_type(None, kind.key_type, ids) if known_map is None else kind.key_type,
            value_id,
            _renumbered_type(known_map.value_type if known_map else None, kind.value_type, ids),
            kind.value_required,
        )
    return kind


def graft(current: Schema, planned: Schema, base: Schema, elsewhere: Mapping[int, str]) -> Schema:
    """Put what a merge planned on the schema that the table has now.

    Args:
        current: the table's schema now.
        planned: the schema that the data was written with.
        base: the table's schema when the merge was planned.
        elsewhere: name of every field id that any of the table's schemas has.

    Raises:
        SchemaMoved: when an id was given to another column meanwhile, or a name was.
    """
    for number in sorted(set(planned.field_ids) - set(base.field_ids)):
        name = planned.find_column_name(number)
        taken = elsewhere.get(number)
        if taken is not None and taken != name:
            raise SchemaMoved(f"field id {number} was kept for column '{name}' and is column '{taken}' now")
    known = set(base.field_ids)
    fields = _graft_fields(current.fields, planned.fields, known, "")
    return Schema(*fields, schema_id=current.schema_id, identifier_field_ids=list(current.identifier_field_ids))


def _graft_fields(
    current: Sequence[NestedField], planned: Sequence[NestedField], known: set[int], prefix: str
) -> list[NestedField]:
    by_id = {field.field_id: field for field in planned}
    names = {field.name for field in current}
    present = {field.field_id for field in current}
    grafted = []
    for field in current:
        twin = by_id.get(field.field_id)
        if twin is None:
            grafted.append(field)
            continue
        kind = _graft_type(field.field_type, twin.field_type, known, f"{prefix}{field.name}")
        grafted.append(field if kind == field.field_type else field.model_copy(update={"field_type": kind}))
    for field in planned:
        if field.field_id in present or field.field_id in known:
            continue
        if field.name in names:
            raise SchemaMoved(f"column '{prefix}{field.name}' was added meanwhile")
        grafted.append(field)
    return grafted


def _graft_type(current: IcebergType, planned: IcebergType, known: set[int], path: str) -> IcebergType:
    if current == planned or promotes(planned, current):
        return current
    if promotes(current, planned):
        return planned
    if isinstance(current, StructType) and isinstance(planned, StructType):
        return StructType(*_graft_fields(current.fields, planned.fields, known, f"{path}."))
    if isinstance(current, ListType) and isinstance(planned, ListType):
        element = _graft_type(current.element_type, planned.element_type, known, f"{path}.element")
        return ListType(current.element_id, element, current.element_required)
    if isinstance(current, MapType) and isinstance(planned, MapType):
        value = _graft_type(current.value_type, planned.value_type, known, f"{path}.value")
        return MapType(current.key_id, current.key_type, current.value_id, value, current.value_required)
    raise SchemaMoved(f"column '{path}' was planned as {planned} and is {current} now")


def schema_problem(written: Schema, current: Schema) -> str | None:
    """Why files written with one schema can't be part of a table with another, or None."""
    if written == current:
        return None
    for number in set(current.field_ids) - set(written.field_ids):
        if current.find_field(number).required:
            return f"column '{current.find_column_name(number)}' is new and required"
    for number in written.field_ids:
        name = current.find_column_name(number)
        if name is None:
            return f"column '{written.find_column_name(number)}' was dropped"
        before, now = written.find_field(number), current.find_field(number)
        same = before.field_type == now.field_type or promotes(before.field_type, now.field_type)
        if before.field_type.is_primitive and not same:
            return f"column '{name}' was {before.field_type} and is {now.field_type}"
        if now.required and not before.required:
            return f"column '{name}' became required"
    return None
