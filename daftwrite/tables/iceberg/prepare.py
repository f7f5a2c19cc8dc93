"""What a write to an Iceberg table needs to know first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

import pyarrow as pa
from pyiceberg.partitioning import PartitionField as IcebergPartitionField
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, sanitize_column_names
from pyiceberg.table.locations import LocationProvider
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

from daftwrite.errors import ConfigError, SchemaError
from daftwrite.formats.parquet import ParquetFormat
from daftwrite.formats.parquet.writer import CODECS
from daftwrite.pipeline.align import Projection, plan_projection
from daftwrite.plan import Sizes, WritePlan, new_write_id
from daftwrite.tables.base import WriteOptions
from daftwrite.tables.iceberg.data_file import MetricsModes
from daftwrite.tables.iceberg.types import arrow_schema, file_schema
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.split import partition_problems
from daftwrite.writers.transforms import PartitionField, Transform

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = [
    "IcebergDetails",
    "IcebergNaming",
    "new_partition_spec",
    "partition_path",
    "plan_write",
    "refuse_unsupported",
]

_TARGET_SIZE = "write.target-file-size-bytes"
_GROUP_SIZE = "write.parquet.row-group-size-bytes"
_GROUP_ROWS = "write.parquet.row-group-limit"
_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"
_PAGE_SIZE = "write.parquet.page-size-bytes"
_PAGE_ROWS = "write.parquet.page-row-limit"
_DICTIONARY_SIZE = "write.parquet.dict-size-bytes"
_NUMBERS = (
    "commit.retry.num-retries",
    "commit.retry.min-wait-ms",
    "commit.retry.max-wait-ms",
    "commit.retry.total-timeout-ms",
    "write.metadata.previous-versions-max",
    "write.summary.partition-limit",
)
_CODEC_NAMES = {"uncompressed": "none", "lz4_raw": "lz4"}

_SIMPLE: dict[type[Any], str] = {
    IdentityTransform: "identity",
    YearTransform: "year",
    MonthTransform: "month",
    DayTransform: "day",
    HourTransform: "hour",
    VoidTransform: "void",
}


@dataclass(frozen=True)
class IcebergDetails:
    """What the commit must know of the table that the plan was made for.

    Attributes:
        table_uuid: the table's identity.
        schema: the schema that data was aligned to.
        spec_id: the partition spec that files were written under.
        metrics: which statistics go into manifests.
    """

    table_uuid: str
    schema: Schema
    spec_id: int
    metrics: MetricsModes


class _PartitionPath:
    def __init__(self, path: str) -> None:
        self._path = path

    def to_path(self) -> str:
        return self._path


@dataclass(frozen=True)
class IcebergNaming:
    """Names data files the way the table's location provider wants them.

    Attributes:
        provider: knows the data path and layout.
        write_id: stands in every name.
        task: the number of the writing task.
    """

    provider: LocationProvider
    write_id: str
    task: int = 0

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The location of a data file."""
        name = f"{self.task:05d}-{sequence:05d}-{self.write_id}.parquet"
        partition: Any = _PartitionPath(partition_path(key.texts)) if key.texts else None
        return self.provider.new_data_location(name, partition)


def partition_path(texts: Sequence[tuple[str, str | None]]) -> str:
    """A partition's path, as the Iceberg libraries write it; nobody reads it back."""
    return "/".join(
        f"{quote_plus(name, safe='')}={quote_plus('null' if text is None else text, safe='')}" for name, text in texts
    )


def refuse_unsupported(name: str, version: int, properties: Mapping[str, str]) -> None:
    """Refuse tables whose data this version would not write as they ask.

    Raises:
        ConfigError: naming the property or format version.
    """
    if version > 2:
        raise ConfigError(f"table {name} has format version {version}; versions 1 and 2 can be written")
    wanted = properties.get("write.format.default", "parquet").lower()
    if wanted != "parquet":
        raise ConfigError(f"table {name} has write.format.default={wanted}; only parquet can be written")
    for key, value in properties.items():
        if key.startswith("encryption."):
            raise ConfigError(f"table {name} has {key} set; encrypted tables can't be written")
        if key in _NUMBERS and not value.strip().lstrip("-").isdigit():
            raise ConfigError(f"table {name}: property {key} must be a number, not {value!r}")
        if key.startswith("write.parquet.bloom-filter-enabled.") and value.lower() == "true":
            raise ConfigError(f"table {name} has {key}=true; bloom filters can't be written yet")


def plan_write(table: PyIcebergTable, schema: pa.Schema, options: WriteOptions) -> WritePlan:
    """Plan a write of data with a schema to a table.

    Raises:
        SchemaError: when the data doesn't fit the table; all differences are listed.
        ConfigError: when an option or table property can't be honoured.
    """
    name = ".".join(table.name())
    properties = table.properties
    iceberg_schema = table.schema()
    spec = table.spec()
    projection = plan_projection(schema, arrow_schema(iceberg_schema), coerce_timestamps=options.coerce_timestamps)
    stored = file_schema(iceberg_schema)
    write_id = new_write_id()
    return WritePlan(
        target=name,
        write_id=write_id,
        projection=Projection(projection.source, projection.target, projection.indices, stored),
        partitioning=_partition_fields(name, spec, iceberg_schema),
        body=tuple(stored.names),
        format=_format(properties, options),
        sizes=options.sizes(_property_sizes(properties)),
        naming=IcebergNaming(table.location_provider(), write_id),
        publish_on_close=True,
        write_empty_file=False,
        details=IcebergDetails(str(table.metadata.table_uuid), iceberg_schema, spec.spec_id, MetricsModes(properties)),
    )


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    text = properties.get(key, str(default))
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ConfigError(f"table property {key} must be a positive number, not {text!r}")
    return number


def _property_sizes(properties: Mapping[str, str]) -> Sizes:
    return Sizes(
        _number(properties, _TARGET_SIZE, Sizes.target_file_size),
        _number(properties, _GROUP_SIZE, Sizes.row_group_size),
        _number(properties, _GROUP_ROWS, Sizes.row_group_rows),
    )


def _format(properties: Mapping[str, str], options: WriteOptions) -> ParquetFormat:
    codec = options.compression
    level = options.compression_level
    if codec is None:
        text = properties.get(_CODEC, "zstd").lower()
        codec = _CODEC_NAMES.get(text, text)
        if codec not in CODECS:
            raise ConfigError(f"table property {_CODEC} must be one of {', '.join(CODECS)}, not {text!r}")
        if level is None and _LEVEL in properties:
            try:
                level = int(properties[_LEVEL])
            except ValueError as error:
                raise ConfigError(f"table property {_LEVEL} must be a number, not {properties[_LEVEL]!r}") from error
    return ParquetFormat(
        compression=codec,
        compression_level=level,
        data_page_size=_number(properties, _PAGE_SIZE, 1 << 20),
        dictionary_page_size=_number(properties, _DICTIONARY_SIZE, 2 << 20),
        max_rows_per_page=_number(properties, _PAGE_ROWS, 20_000),
        store_schema=False,
    )


def _partition_fields(table: str, spec: PartitionSpec, schema: Schema) -> tuple[PartitionField, ...]:
    sanitized = sanitize_column_names(schema)
    fields = []
    for field in spec.fields:
        transform = _transform(field.transform)
        source = sanitized.find_column_name(field.source_id)
        if transform is None or source is None:
            raise ConfigError(
                f"table {table}: partition field '{field.name}' has an unknown transform or a source that was dropped"
            )
        fields.append(PartitionField(source, transform, field.name))
    return tuple(fields)


def _transform(transform: IcebergTransform[Any, Any]) -> Transform | None:
    if isinstance(transform, BucketTransform):
        return Transform("bucket", transform.num_buckets)
    if isinstance(transform, TruncateTransform):
        return Transform("truncate", transform.width)
    name = _SIMPLE.get(type(transform))
    return None if name is None else Transform(name)


def new_partition_spec(fields: Sequence[PartitionField], schema: Schema) -> PartitionSpec:
    """The spec of a table that is made with `partition_by`.

    Raises:
        SchemaError: when a column isn't there, or a transform doesn't take its type; all are listed.
    """
    arrow = arrow_schema(schema)
    problems = partition_problems(fields, arrow)
    if problems:
        raise SchemaError("partition_by doesn't fit the source", problems)
    return PartitionSpec(
        *(
            IcebergPartitionField(
                source_id=schema.find_field(field.source).field_id,
                field_id=1000 + i,
                transform=_iceberg_transform(field.transform),
                name=field.name,
            )
            for i, field in enumerate(fields)
        )
    )


def _iceberg_transform(transform: Transform) -> IcebergTransform[Any, Any]:
    if transform.name == "bucket":
        return BucketTransform(transform.parameter or 0)
    if transform.name == "truncate":
        return TruncateTransform(transform.parameter or 0)
    made: IcebergTransform[Any, Any] = next(kind for kind, name in _SIMPLE.items() if name == transform.name)()
    return made
