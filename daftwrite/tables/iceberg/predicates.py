"""Walking filters, and the schema that they are bound to."""

from __future__ import annotations

from collections.abc import Callable

from pyiceberg.expressions import And, BooleanExpression, Or
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType

__all__ = ["map_predicates", "nullable_schema"]


def map_predicates(
    expression: BooleanExpression, change: Callable[[BooleanExpression], BooleanExpression]
) -> BooleanExpression:
    """A filter without negations with each of its predicates changed."""
    if isinstance(expression, And):
        return And(map_predicates(expression.left, change), map_predicates(expression.right, change))
    if isinstance(expression, Or):
        return Or(map_predicates(expression.left, change), map_predicates(expression.right, change))
    return change(expression)


def nullable_schema(schema: Schema) -> Schema:
    """The schema with required fields below optional ones as optional.

    pyiceberg takes a required field for one that is never null, though it is null wherever its parent is.
    """
    fields = [_below(field, optional=False) for field in schema.fields]
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=[])


def _below(field: NestedField, *, optional: bool) -> NestedField:
    optional = optional or not field.required
    update = {"field_type": _type_below(field.field_type, optional), "required": not optional}
    return field.model_copy(update=update)


def _type_below(kind: IcebergType, optional: bool) -> IcebergType:
    if isinstance(kind, StructType):
        return StructType(*(_below(field, optional=optional) for field in kind.fields))
    if isinstance(kind, ListType):
        return kind.model_copy(update={"element_type": _type_below(kind.element_type, optional)})
    if isinstance(kind, MapType):
        return kind.model_copy(update={"value_type": _type_below(kind.value_type, optional)})
    return kind
