"""What a write to an Iceberg table needs to know first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import LocationProvider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH

from daftwrite.errors import ConfigError, SchemaError
from daftwrite.pipeline.align import Projection, plan_projection
from daftwrite.plan import WritePlan, new_write_id
from daftwrite.tables.base import WriteOptions
from daftwrite.tables.iceberg.creation import our_transform
from daftwrite.tables.iceberg.data_file import MetricsModes, leaf_fields
from daftwrite.tables.iceberg.evolve import merged_schema, replaced_schema
from daftwrite.tables.iceberg.naming import IcebergNaming
from daftwrite.tables.iceberg.options import IcebergOptions
from daftwrite.tables.iceberg.properties import TableProperties, parquet_format
from daftwrite.tables.iceberg.types import arrow_schema, file_schema, new_schema
from daftwrite.writers.transforms import PartitionField

__all__ = ["IcebergDetails", "kept_projection", "partition_fields_of", "plan_write", "planned_schema"]


@dataclass(frozen=True)
class IcebergDetails:
    """What the commit must know of the table that the plan was made for.

    Attributes:
        table_uuid: the table's identity.
        schema: the schema that data is aligned to, and that the table has after the commit.
        base_schema: the schema that the table had.
        spec_id: the partition spec that files are written under.
        metrics: which statistics go into manifests.
        branch: the branch to write to.
        stage_only: whether no branch gets the snapshot.
        snapshot_properties: go into the snapshot's summary.
        replaces_schema: whether the schema takes the place of the table's instead of extending it.
        replaces_partitions: whether the write replaces the partitions that it has rows of.
    """

    table_uuid: str
    schema: Schema
    base_schema: Schema
    spec_id: int
    metrics: MetricsModes
    branch: str = MAIN_BRANCH
    stage_only: bool = False
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    replaces_schema: bool = False
    replaces_partitions: bool = False


def planned_schema(
    metadata: TableMetadata, source: pa.Schema, options: IcebergOptions, coerce_timestamps: str | None
) -> Schema:
    """The schema that the table has after a write of a source.

    Raises:
        SchemaError: when the source's columns can't become the table's; all differences are listed.
    """
    current = metadata.schema()
    if options.schema_mode is None:
        return current
    if options.schema_mode == "merge":
        return merged_schema(current, source, metadata.last_column_id, coerce_timestamps)
    fresh = replaced_schema(current, new_schema(source, coerce_timestamps), metadata.last_column_id)
    problems = list(_lost_columns(metadata, fresh))
    if problems:
        raise SchemaError("the source's schema can't replace the table's", problems)
    identifiers = list(current.identifier_field_ids)
    fields = [f.model_copy(update={"required": True}) if f.field_id in identifiers else f for f in fresh.fields]
    replaced = Schema(*fields, schema_id=current.schema_id, identifier_field_ids=identifiers)
    return current if replaced == current else replaced


def _lost_columns(metadata: TableMetadata, schema: Schema) -> list[str]:
    """Sentences for columns that the table is built on and that a new schema doesn't have."""
    current = metadata.schema()
    built_on = [(field.source_id, "the table is partitioned by it") for field in metadata.spec().fields]
    order = metadata.sort_order_by_id(metadata.default_sort_order_id)
    built_on += [(field.source_id, "the table is sorted by it") for field in (order.fields if order else ())]
    built_on += [(number, "it is an identifier field") for number in current.identifier_field_ids]
    known = set(schema.field_ids)
    return [
        f"column '{current.find_column_name(number)}' is missing in the source or has another type, and {why}"
        for number, why in built_on
        if number not in known
    ]


def plan_write(
    name: str,
    metadata: TableMetadata,
    provider: LocationProvider,
    details: IcebergDetails,
    source: pa.Schema,
    options: WriteOptions,
) -> WritePlan:
    """Plan a write of data with a schema to a table.

    Raises:
        SchemaError: when the data doesn't fit the table; all differences are listed.
        ConfigError: when an option or table property can't be honoured.
    """
    schema = details.schema
    projection = plan_projection(source, arrow_schema(schema), coerce_timestamps=options.coerce_timestamps)
    stored = file_schema(schema)
    write_id = new_write_id()
    columns = {column: path for path, (_, column) in leaf_fields(schema).items()}
    spec = metadata.specs().get(details.spec_id) or metadata.spec()
    return WritePlan(
        target=name,
        write_id=write_id,
        projection=Projection(projection.source, projection.target, projection.indices, stored),
        partitioning=partition_fields_of(name, spec, sanitize_column_names(schema)),
        body=tuple(stored.names),
        format=parquet_format(metadata.properties, options, columns),
        sizes=options.sizes(TableProperties(metadata.properties).sizes),
        naming=IcebergNaming(provider, write_id),
        publish_on_close=True,
        write_empty_file=False,
        details=details,
    )


def kept_projection(base: Schema, planned: Schema) -> Projection:
    """Turns rows as the table's schema has them into rows as they are stored under the planned one."""
    projection = plan_projection(arrow_schema(base), arrow_schema(planned))
    return Projection(projection.source, projection.target, projection.indices, file_schema(planned))


def partition_fields_of(table: str, spec: PartitionSpec, schema: Schema) -> tuple[PartitionField, ...]:
    """A spec's fields with the names that their sources have in a schema.

    Raises:
        ConfigError: when a transform isn't known, or a source was dropped.
    """
    fields = []
    for part in spec.fields:
        transform = our_transform(part.transform)
        source = schema.find_column_name(part.source_id)
        if transform is None or source is None:
            raise ConfigError(
                f"table {table}: partition field '{part.name}' has an unknown transform or a source that was dropped"
            )
        fields.append(PartitionField(source, transform, part.name))
    return tuple(fields)
