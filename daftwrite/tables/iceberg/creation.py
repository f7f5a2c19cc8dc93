"""Tables that a write makes or replaces: schema, partitioning, sort order and properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionSpec
from pyiceberg.partitioning import PartitionField as IcebergPartitionField
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, NullOrder, SortDirection, SortOrder
from pyiceberg.table.sorting import SortField as IcebergSortField
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.transforms import Transform as IcebergTransform
from pyiceberg.types import DoubleType, FloatType

from daftwrite.errors import ConfigError, SchemaError
from daftwrite.sorting import SortField
from daftwrite.tables.iceberg.evolve import replaced_schema
from daftwrite.tables.iceberg.options import IcebergOptions
from daftwrite.tables.iceberg.properties import refuse_unsupported
from daftwrite.tables.iceberg.types import arrow_schema, new_schema
from daftwrite.writers.split import partition_problems
from daftwrite.writers.transforms import PartitionField, Transform

__all__ = ["NewTable", "check_matches", "our_transform", "plan_new_table", "plan_replacement", "unmade_metadata"]

_SIMPLE: dict[type[Any], str] = {
    IdentityTransform: "identity",
    YearTransform: "year",
    MonthTransform: "month",
    DayTransform: "day",
    HourTransform: "hour",
    VoidTransform: "void",
}


@dataclass(frozen=True)
class NewTable:
    """What a table is made with."""

    schema: Schema
    spec: PartitionSpec
    sort_order: SortOrder
    properties: dict[str, str]


def plan_new_table(name: str, source: pa.Schema, options: IcebergOptions, coerce_timestamps: str | None) -> NewTable:
    """The table that a source becomes.

    Raises:
        SchemaError: when a column has no Iceberg type, or an option names a column that doesn't fit; all are listed.
        ConfigError: when a property can't be honoured.
    """
    version = options.properties.get("format-version", "2")
    refuse_unsupported(name, int(version) if version.isdigit() else 0, options.properties)
    return _parts(_with_identifiers(new_schema(source, coerce_timestamps), options), options)


def plan_replacement(
    metadata: TableMetadata, source: pa.Schema, options: IcebergOptions, coerce_timestamps: str | None
) -> NewTable:
    """The table that a source becomes in place of one that exists: known columns keep their field ids.

    Raises:
        SchemaError: as `plan_new_table` does.
    """
    fresh = replaced_schema(metadata.schema(), new_schema(source, coerce_timestamps), metadata.last_column_id)
    return _parts(_with_identifiers(fresh, options), options)


def _parts(schema: Schema, options: IcebergOptions) -> NewTable:
    return NewTable(
        schema,
        _partition_spec(options.partition_by, schema),
        _sort_order(options.sort_by, schema),
        dict(options.properties),
    )


def _with_identifiers(schema: Schema, options: IcebergOptions) -> Schema:
    problems = []
    ids = []
    for name in options.identifier_fields:
        try:
            field = schema.find_field(name)
        except ValueError:
            problems.append(f"column '{name}' is not in the source, and identifier_fields names it")
            continue
        if not field.field_type.is_primitive or isinstance(field.field_type, (FloatType, DoubleType)):
            problems.append(f"column '{name}': {field.field_type} can't identify rows")
        ids.append(field.field_id)
    if problems:
        raise SchemaError("identifier_fields doesn't fit the source", problems)
    if not ids:
        return schema
    # The specification wants identifier fields to be required.
    fields = [f.model_copy(update={"required": True}) if f.field_id in ids else f for f in schema.fields]
    return Schema(*fields, schema_id=schema.schema_id, identifier_field_ids=ids)


def _partition_spec(fields: Sequence[PartitionField], schema: Schema) -> PartitionSpec:
    problems = partition_problems(fields, arrow_schema(schema))
    for field in fields:
        if field.name in schema.column_names and not (
            field.transform.name == "identity" and field.name == field.source
        ):
            problems.append(f"partition '{field.name}' has the name of a column; give it another with name=")
    if problems:
        raise SchemaError("partition_by doesn't fit the source", problems)
    return PartitionSpec(
        *(
            IcebergPartitionField(
                source_id=schema.find_field(field.source).field_id,
                field_id=PARTITION_FIELD_ID_START + position,
                transform=_iceberg_transform(field.transform),
                name=field.name,
            )
            for position, field in enumerate(fields)
        )
    )


def _sort_order(fields: Sequence[SortField], schema: Schema) -> SortOrder:
    if not fields:
        return UNSORTED_SORT_ORDER
    problems = [
        problem.replace("partition_by", "sort_by")
        for problem in partition_problems([field.field for field in fields], arrow_schema(schema))
    ]
    if problems:
        raise SchemaError("sort_by doesn't fit the source", problems)
    return SortOrder(
        *(
            IcebergSortField(
                source_id=schema.find_field(sort.field.source).field_id,
                transform=_iceberg_transform(sort.field.transform),
                direction=SortDirection.DESC if sort.descending else SortDirection.ASC,
                null_order=NullOrder.NULLS_FIRST if sort.puts_nulls_first else NullOrder.NULLS_LAST,
            )
            for sort in fields
        )
    )


def unmade_metadata(made: NewTable, name: str) -> TableMetadata:
    """The metadata that a table would have, as far as it is known before its catalog makes it."""
    return new_table_metadata(
        schema=made.schema,
        partition_spec=made.spec,
        sort_order=made.sort_order,
        location=f"/{name}",
        properties=made.properties,
    )


def check_matches(name: str, metadata: TableMetadata, options: IcebergOptions) -> None:
    """Refuse options for a table that is made, where the table exists and is made otherwise.

    Raises:
        ConfigError: naming what differs.
    """
    schema = metadata.schema()
    if options.partition_by:
        present = [f"{f.name}: {f.transform}({schema.find_column_name(f.source_id)})" for f in metadata.spec().fields]
        asked = [f"{field.name}: {field.transform}({field.source})" for field in options.partition_by]
        if present != asked:
            raise ConfigError(
                f"table {name} exists and is partitioned by [{', '.join(present)}], not by [{', '.join(asked)}]"
            )
    if options.sort_by:
        order = _sort_order(options.sort_by, schema)
        current = metadata.sort_order_by_id(metadata.default_sort_order_id) or UNSORTED_SORT_ORDER
        if current.fields != order.fields:
            raise ConfigError(f"table {name} exists and has the sort order {current}, not {order}")
    for key, value in options.properties.items():
        known = str(metadata.format_version) if key == "format-version" else metadata.properties.get(key)
        if known != value:
            raise ConfigError(f"table {name} exists and has {key}={known!r}, not {value!r}; set it on the table")
    if options.identifier_fields:
        names = sorted(str(schema.find_column_name(number)) for number in schema.identifier_field_ids)
        if names != sorted(options.identifier_fields):
            raise ConfigError(f"table {name} exists and has the identifier fields {names}")


def our_transform(transform: IcebergTransform[Any, Any]) -> Transform | None:
    """The transform of a partition field, or None for one that isn't known."""
    if isinstance(transform, BucketTransform):
        return Transform("bucket", transform.num_buckets)
    if isinstance(transform, TruncateTransform):
        return Transform("truncate", transform.width)
    name = _SIMPLE.get(type(transform))
    return None if name is None else Transform(name)


def _iceberg_transform(transform: Transform) -> IcebergTransform[Any, Any]:
    if transform.name == "bucket":
        return BucketTransform(transform.parameter or 0)
    if transform.name == "truncate":
        return TruncateTransform(transform.parameter or 0)
    made: IcebergTransform[Any, Any] = next(kind for kind, name in _SIMPLE.items() if name == transform.name)()
    return made
