"""pyiceberg's own write tests, mirrored for daftwrite's verbs where no other test of ours covers them.

The expected values are those that pyiceberg's tests state, or Spark's where these compare with Spark.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any
from urllib.parse import unquote_plus

import fastavro
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType, UUIDType

import daftwrite as dw


def rows(table: Table, **scan: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.refresh().scan(**scan).to_arrow().to_pylist()
    return found


ODD = ["letter/abc", "a.b", "with space", "ünï", "1st", "a%2Fb", "q'uote", "tab\tbed", "x=y&z", "🙂"]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("name", ODD)
def test_odd_names_of_columns_partition_and_read_back(catalog: SqlCatalog, name: str, version: str) -> None:
    schema = Schema(NestedField(1, name, StringType()), NestedField(2, "id", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), name))
    table = catalog.create_table("ns.t", schema, partition_spec=spec, properties={"format-version": version})
    data = pa.table({name: ["a/b", None, "é=%"], "id": ["1", "2", "3"]})
    result = dw.from_arrow(data).write_iceberg(table)
    key = {"key": lambda row: row["id"]}
    assert sorted(rows(table), **key) == data.to_pylist()
    assert sorted(pl.scan_iceberg(table).collect().to_dicts(), **key) == data.to_pylist()
    assert sorted(str(dict(file.partition)[name]) for file in result.files) == ["None", "a/b", "é=%"]
    (manifest,) = table.current_snapshot().manifests(table.io)
    with table.io.new_input(manifest.manifest_path).open() as stream:
        entries = list(fastavro.reader(stream))
    assert len(entries) == 3
    for entry in entries:
        folder = entry["data_file"]["file_path"].split("/data/")[1].split("/")[0]
        assert unquote_plus(folder.split("=", 1)[0]) == name


def test_summaries_count_as_the_specification_says(catalog: SqlCatalog) -> None:
    data = pa.table({"a": [1, 2, 3]})
    table = catalog.create_table("ns.t", data.schema)
    dw.from_arrow(data).write_iceberg(table)
    dw.from_arrow(data).write_iceberg(table)
    new = dw.from_arrow(pa.table({"a": [9]}))
    new.write_iceberg(table, mode="overwrite", overwrite_filter="a = 3")
    found = [snapshot.summary for snapshot in table.refresh().snapshots()]
    assert [summary.operation.value for summary in found] == ["append", "append", "overwrite"]
    keys = ("added-data-files", "deleted-data-files", "added-records", "deleted-records", "total-records")
    counts = [tuple(int(summary.additional_properties.get(key, 0)) for key in keys) for summary in found]
    # Both files have other rows, too, and are rewritten into the one file of the new row or files of their own.
    assert counts[0] == (1, 0, 3, 0, 3)
    assert counts[1] == (1, 0, 3, 0, 6)
    assert counts[2][1:] == (2, 5, 6, 5)


@pytest.mark.parametrize("version", ["1", "2"])
def test_nulls_are_counted_and_filtered(catalog: SqlCatalog, version: str) -> None:
    full = {"bool": [False, None, True], "string": ["a", None, "z"], "long": [1, None, 9], "double": [0.0, None, 0.9]}
    types = pa.schema([("bool", pa.bool_()), ("string", pa.string()), ("long", pa.int64()), ("double", pa.float64())])
    data = pa.table(full, types)
    only = pa.table({name: [None, None] for name in full}, types)
    table = catalog.create_table("ns.t", types, properties={"format-version": version})
    for part in (data, data.slice(0, 0), only, data):
        dw.from_arrow(part).write_iceberg(table)
    for name in full:
        assert len(rows(table, row_filter=f"{name} is not null")) == 4
        assert len(rows(table, row_filter=f"{name} is null")) == 4


def test_null_structs_lists_and_maps_stay_null_in_the_files(catalog: SqlCatalog) -> None:
    item = pa.struct([("x", pa.int64())])
    schema = pa.schema([("s", item), ("l", pa.list_(item)), ("m", pa.map_(pa.string(), item))])
    values = [
        {"s": None, "l": None, "m": None},
        {"s": {"x": None}, "l": [], "m": []},
        {"s": {"x": 1}, "l": [None, {"x": 2}], "m": [("k", None)]},
    ]
    table = catalog.create_table("ns.t", schema)
    dw.from_arrow(pa.Table.from_pylist(values, schema)).write_iceberg(table)
    frame = pl.scan_iceberg(table.refresh()).select("s", "l").collect().to_dicts()
    assert [row["l"] for row in frame] == [row["l"] for row in values]
    assert [row["s"] for row in frame] == [row["s"] for row in values]


def test_uuids_partition_the_table(catalog: SqlCatalog) -> None:
    ids = [uuid.UUID(int=1), uuid.UUID(int=2**127), None]
    schema = Schema(NestedField(1, "u", UUIDType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "u"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec)
    result = dw.from_arrow(pa.table({"u": pa.array([i and i.bytes for i in ids], pa.binary(16))})).write_iceberg(table)
    assert len(result.files) == 3
    found = [row["u"] for row in rows(table)]
    assert sorted(found, key=str) == sorted(ids, key=str)


def test_fields_in_another_order_and_a_subset_are_matched_by_name(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())]))
    dw.from_arrow(pa.table({"c": [dt.date(2020, 1, 1)], "a": pa.array([1], pa.int32())})).write_iceberg(table)
    assert rows(table) == [{"a": 1, "b": None, "c": dt.date(2020, 1, 1)}]


def test_a_reader_is_streamed_once_into_several_files(catalog: SqlCatalog) -> None:
    batch = pa.record_batch({"a": list(range(50_000))})
    asked = 0

    def batches() -> Any:
        nonlocal asked
        for _ in range(20):
            asked += 1
            yield batch

    reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
    table = catalog.create_table("ns.t", batch.schema)
    result = dw.from_arrow(reader).write_iceberg(table, target_file_size="512 KiB", compression="none")
    assert asked == 20
    assert len(result.files) > 1
    assert len(rows(table)) == 1_000_000
