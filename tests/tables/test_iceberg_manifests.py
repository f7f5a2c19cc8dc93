"""Partition values in manifests: the same after manifests were read and written again."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DecimalType, FixedType, IcebergType, NestedField, UUIDType

import daftwrite as dw

DOUBLES = [0.1, 1e300, -0.0, 0.0, 5e-324, -1.7976931348623157e308, float("nan"), float("inf"), None]
FLOATS = [struct.unpack("<f", struct.pack("<f", 0.1))[0], 3.4028234663852886e38, 1e-45, -0.0, None]
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "double": (pa.float64(), DOUBLES),
    "float": (pa.float32(), FLOATS),
    "long": (pa.int64(), [-(2**63), 2**53 + 1, 2**63 - 1, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31), None]),
    "timestamp": (
        pa.timestamp("us"),
        [dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(9999, 12, 31), None],
    ),
    "decimal": (pa.decimal128(38, 10), [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10"), None]),
    "binary": (pa.binary(), [b"", b"\x00\xff", None]),
    "string": (pa.string(), ["", "é/=%", None]),
}


def exactly(value: Any) -> str:
    """Tells -0.0 from 0.0 and is equal for NaN."""
    return f"{type(value).__name__} {value!r}"


def avro_partitions(table: Table) -> list[str]:
    """The partition values of all live files as fastavro reads them."""
    found = []
    for manifest in table.refresh().current_snapshot().manifests(table.io):
        with table.io.new_input(manifest.manifest_path).open() as stream:
            entries = list(fastavro.reader(stream))
        found += [exactly(entry["data_file"]["partition"]["p"]) for entry in entries if entry["status"] != 2]
    return sorted(found)


def made(catalog: SqlCatalog, kind: str, **properties: str) -> tuple[Table, pa.Table]:
    type_, values = VALUES[kind]
    data = pa.table({"p": pa.array(values, type_), "id": pa.array(range(len(values)), pa.int64())})
    table = catalog.create_table("ns.t", data.schema, properties=properties)
    with table.update_spec() as update:
        update.add_field("p", "identity", "p")
    dw.from_arrow(data).write_iceberg(table)
    return table, data


@pytest.mark.parametrize("kind", VALUES)
def test_manifests_written_again_keep_partition_values(catalog: SqlCatalog, kind: str) -> None:
    table, data = made(catalog, kind)
    before = avro_partitions(table)
    dw.from_arrow(data.slice(0, 1)).write_iceberg(table, mode="overwrite", overwrite_filter="id = 0")
    assert avro_partitions(table) == before


@pytest.mark.parametrize("kind", VALUES)
def test_merged_manifests_keep_partition_values(catalog: SqlCatalog, kind: str) -> None:
    merge = {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
    table, data = made(catalog, kind, **merge)
    before = avro_partitions(table)
    dw.from_arrow(data).write_iceberg(table)
    assert len(table.refresh().current_snapshot().manifests(table.io)) == 1
    assert avro_partitions(table) == sorted([*before, *before])


@pytest.mark.parametrize("value", [0.1, 1e300, 5e-324])
@pytest.mark.parametrize(
    "options", [{"mode": "overwrite_partitions"}, {"mode": "overwrite", "filter": True}], ids=["partitions", "filter"]
)
def test_a_double_partition_is_found_by_its_value(catalog: SqlCatalog, value: float, options: dict[str, Any]) -> None:
    table, _ = made(catalog, "double")
    chosen = dict(options)
    if chosen.pop("filter", None):
        chosen["overwrite_filter"] = dw.col("p") == value
    new = pa.table({"p": [value], "id": [100]})
    result = dw.from_arrow(new).write_iceberg(table, **chosen)
    assert len(result.replaced) == 1
    ids = table.refresh().scan().to_arrow()["id"].to_pylist()
    assert sorted(ids) == sorted([*(n for n in range(len(DOUBLES)) if n != DOUBLES.index(value)), 100])


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("kind", "arrow", "value"),
    [
        (DecimalType(18, 2), pa.decimal128(18, 2), Decimal("1.25")),
        (UUIDType(), pa.binary(16), uuid.UUID(int=5).bytes),
        (FixedType(3), pa.binary(3), b"abc"),
    ],
    ids=["decimal", "uuid", "fixed"],
)
def test_partition_fields_of_one_type_are_valid_avro(
    catalog: SqlCatalog, kind: IcebergType, arrow: pa.DataType, value: Any, version: str
) -> None:
    schema = Schema(NestedField(1, "a", kind), NestedField(2, "b", kind))
    spec = PartitionSpec(*(PartitionField(n, 999 + n, IdentityTransform(), "ab"[n - 1]) for n in (1, 2)))
    table = catalog.create_table("ns.t", schema, partition_spec=spec, properties={"format-version": version})
    column = pa.array([value], arrow)
    dw.from_arrow(pa.table({"a": column, "b": column})).write_iceberg(table)
    (manifest,) = table.refresh().current_snapshot().manifests(table.io)
    with table.io.new_input(manifest.manifest_path).open() as stream:
        (entry,) = fastavro.reader(stream)
    read = {name: getattr(found, "bytes", found) for name, found in entry["data_file"]["partition"].items()}
    assert read == {"a": value, "b": value}
    assert len(table.scan().to_arrow()) == 1
