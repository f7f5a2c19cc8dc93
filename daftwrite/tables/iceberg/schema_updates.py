"""The updates that give a table another current schema, in the same commit as data."""

from __future__ import annotations

from collections import defaultdict

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import parse_mapping_from_json, update_mapping
from pyiceberg.table.update import (
    AddSchemaUpdate,
    SetCurrentSchemaUpdate,
    SetPropertiesUpdate,
    TableUpdate,
)
from pyiceberg.types import ListType, MapType, NestedField, StructType

__all__ = ["schema_updates"]

_NAME_MAPPING = "schema.name-mapping.default"


def schema_updates(metadata: TableMetadata, schema: Schema) -> tuple[Schema, list[TableUpdate]]:
    """The schema with the id that it gets, and the updates that make it current; none if it is so already."""
    if schema == metadata.schema():
        return metadata.schema(), []
    for known in metadata.schemas:
        if known == schema:
            return known, [SetCurrentSchemaUpdate(schema_id=known.schema_id)]
    number = max(known.schema_id for known in metadata.schemas) + 1
    numbered = Schema(*schema.fields, schema_id=number, identifier_field_ids=list(schema.identifier_field_ids))
    updates: list[TableUpdate] = [
        AddSchemaUpdate(schema_=numbered),
        SetCurrentSchemaUpdate(schema_id=-1),
    ]
    mapping = metadata.properties.get(_NAME_MAPPING)
    if mapping is not None:
        added = _added(metadata.schema(), numbered)
        extended = update_mapping(parse_mapping_from_json(mapping), {}, added)
        updates.append(SetPropertiesUpdate(updates={_NAME_MAPPING: extended.model_dump_json()}))
    return numbered, updates


def _added(before: Schema, after: Schema) -> dict[int, list[NestedField]]:
    """New fields by the id of the field they stand in, -1 for the table itself."""
    known = set(before.field_ids)
    found: dict[int, list[NestedField]] = defaultdict(list)

    def walk(fields: tuple[NestedField, ...], parent: int) -> None:
        for field in fields:
            if field.field_id not in known:
                found[parent].append(field)
                continue
            kind = field.field_type
            if isinstance(kind, StructType):
                walk(kind.fields, field.field_id)
            elif isinstance(kind, ListType):
                walk((kind.element_field,), field.field_id)
            elif isinstance(kind, MapType):
                walk((kind.key_field, kind.value_field), field.field_id)

    walk(after.fields, -1)
    return dict(found)
