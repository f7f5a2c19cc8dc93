"""Tables that a write makes or replaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import LongType

import daftwrite as dw
from tests.conftest import files_below

DATA = pa.table({"id": [1, 2], "name": ["a", "b"]})


def make(catalog: SqlCatalog, data: pa.Table = DATA, **options: Any) -> Table:
    options.setdefault("create", True)
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, **options)
    return catalog.load_table("ns.t")


def rows(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.refresh().scan().to_arrow().to_pylist()
    return sorted(found, key=repr)


def test_sort_order_properties_and_identifiers_are_made_with_the_table(catalog: SqlCatalog) -> None:
    table = make(
        catalog,
        sort_by=["name", dw.desc("id"), dw.asc(dw.bucket(4, "id"), nulls_first=False)],
        properties={"write.parquet.compression-codec": "snappy", "owner": "me"},
        identifier_fields=["id"],
    )
    order = table.sort_order()
    assert [(f.source_id, str(f.transform), f.direction, f.null_order) for f in order.fields] == [
        (2, "identity", SortDirection.ASC, NullOrder.NULLS_FIRST),
        (1, "identity", SortDirection.DESC, NullOrder.NULLS_LAST),
        (1, "bucket[4]", SortDirection.ASC, NullOrder.NULLS_LAST),
    ]
    assert table.properties["owner"] == "me"
    assert table.schema().identifier_field_ids == [1]
    assert table.schema().find_field("id").required
    assert not table.schema().find_field("name").required
    assert rows(table) == DATA.to_pylist()
    assert len(table.snapshots()) == 1


def test_the_format_version_is_a_property(catalog: SqlCatalog) -> None:
    assert make(catalog, properties={"format-version": "1"}).metadata.format_version == 1
    with pytest.raises(dw.ConfigError, match="version 3"):
        dw.from_arrow(DATA).write_iceberg("ns.u", catalog=catalog, create=True, properties={"format-version": "3"})


def test_descriptions_of_columns_are_carried(catalog: SqlCatalog) -> None:
    inner = pa.struct([pa.field("x", pa.int64(), metadata={"doc": "inside"})])
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), metadata={"doc": "the first"}),
            pa.field("b", pa.int64(), metadata={"comment": "as Spark says"}),
            pa.field("c", inner),
        ]
    )
    table = make(catalog, pa.table({"a": [1], "b": [2], "c": [{"x": 1}]}, schema=schema))
    docs = {name: table.schema().find_field(name).doc for name in ("a", "b", "c.x")}
    assert docs == {"a": "the first", "b": "as Spark says", "c.x": "inside"}


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"sort_by": "nowhere"}, "sort_by"),
        ({"identifier_fields": ["nowhere"]}, "identifier_fields"),
        ({"identifier_fields": ["x"]}, "'x'"),
        ({"partition_by": dw.day("name")}, "day"),
        ({"partition_by": dw.PartitionField("id", dw.bucket(2, "id").transform, "name")}, "'name'"),
        ({"properties": {"write.format.default": "orc"}}, "orc"),
    ],
)
def test_options_that_do_not_fit_make_nothing(
    catalog: SqlCatalog, tmp_path: Path, options: dict[str, Any], named: str
) -> None:
    before = files_below(tmp_path)
    with pytest.raises(dw.DaftwriteError, match=named):
        make(catalog, DATA.append_column("x", pa.array([0.5, 1.5])), **options)
    assert not catalog.table_exists("ns.t")
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    "options",
    [
        {"sort_by": "id"},
        {"properties": {"owner": "you"}},
        {"properties": {"format-version": "1"}},
        {"identifier_fields": ["name"]},
        {"partition_by": "name"},
    ],
)
def test_a_table_that_is_made_otherwise_is_refused(catalog: SqlCatalog, options: dict[str, Any]) -> None:
    same = {"sort_by": "name", "properties": {"owner": "me"}, "identifier_fields": ["id"]}
    table = make(catalog, **same)
    make(catalog, **same)
    with pytest.raises(dw.ConfigError, match="exists"):
        make(catalog, **options)
    assert len(rows(table)) == 4


def test_a_table_is_replaced_in_one_commit_and_keeps_its_history(catalog: SqlCatalog) -> None:
    table = make(catalog, partition_by="name", sort_by="id", properties={"owner": "me"})
    first = table.current_snapshot().snapshot_id
    uuid = table.metadata.table_uuid
    new = pa.table({"id": [7], "day": pa.array([0], pa.timestamp("us"))})
    make(catalog, new, create="or_replace", partition_by=dw.day("day"), properties={"owner": "you", "k": "v"})
    table.refresh()
    assert table.metadata.table_uuid == uuid
    assert [r["id"] for r in rows(table)] == [7]
    assert table.schema().column_names == ["id", "day"]
    assert table.schema().find_field("id").field_id == 1
    assert table.schema().find_field("day").field_id == 3
    assert [(f.source_id, f.transform, f.field_id) for f in table.spec().fields] == [(3, DayTransform(), 1001)]
    assert table.sort_order().fields == []
    assert (table.properties["owner"], table.properties["k"]) == ("you", "v")
    snapshot = table.current_snapshot()
    assert snapshot.parent_snapshot_id is None
    assert snapshot.summary["total-records"] == "1"
    assert len(table.scan(snapshot_id=first).to_arrow()) == 2


def test_replacing_twice_uses_known_specs_again(catalog: SqlCatalog) -> None:
    make(catalog, partition_by="name", sort_by="id")
    make(catalog, create="or_replace", partition_by=dw.bucket(2, "id"))
    table = make(catalog, create="or_replace", partition_by="name", sort_by="id")
    assert [f.transform for f in table.spec().fields] == [IdentityTransform()]
    assert table.spec().spec_id == 0
    assert len(table.specs()) == 2
    assert len(table.schemas()) == 1
    assert rows(table) == DATA.to_pylist()
    table = make(catalog, create="or_replace", partition_by=dw.bucket(2, "id"))
    assert [f.transform for f in table.spec().fields] == [BucketTransform(2)]


def test_or_replace_makes_a_table_that_is_missing(catalog: SqlCatalog) -> None:
    assert rows(make(catalog, create="or_replace")) == DATA.to_pylist()


def test_replacing_with_nothing_leaves_an_empty_table(catalog: SqlCatalog) -> None:
    make(catalog)
    table = make(catalog, DATA.slice(0, 0).select(["id"]), create="or_replace")
    assert rows(table) == []
    assert table.schema().column_names == ["id"]


def test_version_1_cannot_change_its_partitioning(catalog: SqlCatalog) -> None:
    table = make(catalog, properties={"format-version": "1"}, partition_by="name")
    make(catalog, create="or_replace", partition_by="name")
    with pytest.raises(dw.ConfigError, match="version 1"):
        make(catalog, create="or_replace", partition_by="id")
    assert rows(table) == DATA.to_pylist()


def test_a_table_that_moved_is_not_replaced(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = make(catalog)
    before = len([f for f in files_below(tmp_path) if f.endswith(".parquet")])
    with pytest.raises(dw.CommitConflict, match="changed meanwhile"):
        with dw.open_writer(dw.IcebergTarget("ns.t", catalog=catalog, create="or_replace")) as writer:
            writer.write(pa.table({"x": [1]}))
            with catalog.load_table("ns.t").update_schema() as update:
                update.add_column("y", LongType())
    assert len(rows(table)) == 2
    assert len([f for f in files_below(tmp_path) if f.endswith(".parquet")]) == before


def test_rows_appended_meanwhile_are_replaced_too(catalog: SqlCatalog) -> None:
    table = make(catalog)
    with dw.open_writer(dw.IcebergTarget("ns.t", catalog=catalog, create="or_replace")) as writer:
        writer.write(pa.table({"id": [9]}))
        catalog.load_table("ns.t").append(DATA)
    assert rows(table) == [{"id": 9}]
