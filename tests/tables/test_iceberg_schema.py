"""`schema_mode="merge"` and `"overwrite"`: the schema moves with the data, in one commit, or not at all."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

import daftwrite as dw
from tests.conftest import files_below


def write(table: Table, data: pa.Table, **options: Any) -> dw.WriteResult:
    return dw.from_arrow(data).write_iceberg(table, **options)


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=repr)


def test_new_columns_come_last_and_are_optional(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    write(table, pa.table({"id": [1]}))
    schema = pa.schema([pa.field("new", pa.string(), nullable=False), ("id", pa.int64()), ("other", pa.float64())])
    write(table, pa.table({"new": ["a"], "id": [2], "other": [0.5]}, schema=schema), schema_mode="merge")
    assert rows(table) == [{"id": 1, "new": None, "other": None}, {"id": 2, "new": "a", "other": 0.5}]
    assert [(f.field_id, f.name, f.required) for f in table.schema().fields] == [
        (1, "id", False),
        (2, "new", False),
        (3, "other", False),
    ]
    assert table.metadata.last_column_id == 3
    assert table.current_snapshot().schema_id == table.schema().schema_id == 1
    assert len(table.snapshots()) == 2


def test_a_source_with_fewer_columns_changes_nothing(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64()), ("name", pa.string())]))
    write(table, pa.table({"id": [1]}), schema_mode="merge")
    assert len(table.refresh().schemas()) == 1
    assert rows(table) == [{"id": 1, "name": None}]


@pytest.mark.parametrize(
    ("before", "source", "after"),
    [
        (IntegerType(), pa.int64(), LongType()),
        (IntegerType(), pa.uint32(), LongType()),
        (FloatType(), pa.float64(), DoubleType()),
        (DecimalType(9, 2), pa.decimal128(18, 2), DecimalType(18, 2)),
        (DecimalType(9, 2), pa.decimal128(12, 1), DecimalType(13, 2)),
        (LongType(), pa.int32(), LongType()),
        (IntegerType(), pa.int8(), IntegerType()),
        (DoubleType(), pa.float32(), DoubleType()),
        (DecimalType(18, 2), pa.decimal128(9, 2), DecimalType(18, 2)),
    ],
)
def test_types_are_promoted_as_the_specification_allows(
    catalog: SqlCatalog, before: Any, source: pa.DataType, after: Any
) -> None:
    table = catalog.create_table("ns.t", Schema(NestedField(1, "x", before)))
    stored = {"int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64()}
    old = stored.get(str(before)) or pa.decimal128(before.precision, before.scale)
    one = Decimal("1") if pa.types.is_decimal(old) else 1
    write(table, pa.table({"x": pa.array([one], old)}))
    two = Decimal("2") if pa.types.is_decimal(source) else 2
    write(table, pa.table({"x": pa.array([two], source)}), schema_mode="merge")
    assert table.refresh().schema().find_type("x") == after
    assert [r["x"] for r in rows(table)] == [1, 2]


@pytest.mark.parametrize(
    ("before", "source"),
    [
        (LongType(), pa.float64()),
        (StringType(), pa.int64()),
        (IntegerType(), pa.string()),
        (DecimalType(9, 2), pa.decimal128(18, 4)),
        (DoubleType(), pa.int64()),
    ],
)
def test_other_changes_of_type_are_refused(
    catalog: SqlCatalog, before: Any, source: pa.DataType, tmp_path: Path
) -> None:
    table = catalog.create_table("ns.t", Schema(NestedField(1, "x", before)))
    files = files_below(tmp_path)
    with pytest.raises(dw.SchemaError, match="column 'x'"):
        write(table, pa.table({"x": pa.nulls(1, source)}), schema_mode="merge")
    assert files_below(tmp_path) == files


def test_nested_columns_are_merged_too(catalog: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "s", StructType(NestedField(2, "a", IntegerType()))),
        NestedField(3, "l", ListType(4, StructType(NestedField(5, "a", IntegerType())), False)),
        NestedField(6, "m", MapType(7, StringType(), 8, StructType(NestedField(9, "a", FloatType())), False)),
    )
    table = catalog.create_table("ns.t", schema)
    before = table.schema()
    inner = pa.struct([("b", pa.string()), ("a", pa.int64())])
    valued = pa.struct([("a", pa.float64()), ("c", pa.list_(pa.int32()))])
    data = pa.Table.from_pylist(
        [{"s": {"a": 2**40, "b": "x"}, "l": [{"a": 1, "b": "y"}, None], "m": [("k", {"a": 0.5, "c": [1]})]}],
        schema=pa.schema([("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), valued))]),
    )
    write(table, data, schema_mode="merge")
    now = table.refresh().schema()
    assert now.find_type("s.a") == now.find_type("l.element.a") == LongType()
    assert now.find_type("m.value.a") == DoubleType()
    ids = {name: now.find_field(name).field_id for name in ("s.a", "s.b", "l.element.b", "m.value.c")}
    assert ids["s.a"] == before.find_field("s.a").field_id
    assert len({*ids.values()} | {*range(1, 10)}) == 9 + 3
    assert rows(table) == [
        {
            "s": {"a": 2**40, "b": "x"},
            "l": [{"a": 1, "b": "y"}, None],
            "m": [("k", {"a": 0.5, "c": [1]})],
        }
    ]


def test_a_new_column_without_an_iceberg_type_is_refused(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    data = pa.table({"id": [1], "n": pa.nulls(1), "d": pa.array([1], pa.duration("s"))})
    with pytest.raises(dw.SchemaError) as caught:
        write(table, data, schema_mode="merge")
    assert len(caught.value.differences) == 2
    assert len(table.refresh().schemas()) == 1


def test_a_name_in_another_case_is_no_new_column(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(dw.SchemaError, match="the table has 'id'"):
        write(table, pa.table({"ID": [1]}), schema_mode="merge")


def test_the_name_mapping_learns_new_columns(catalog: SqlCatalog) -> None:
    from pyiceberg.table.name_mapping import create_mapping_from_schema

    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    with table.transaction() as transaction:
        mapping = create_mapping_from_schema(table.schema()).model_dump_json()
        transaction.set_properties({"schema.name-mapping.default": mapping})
    write(table, pa.table({"id": [1], "x": [2]}), schema_mode="merge")
    mapped = {name: mapping.field_id for mapping in table.refresh().name_mapping().root for name in mapping.names}
    assert mapped == {"id": 1, "x": 2}


def test_merging_and_overwriting_go_together(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", Schema(NestedField(1, "id", IntegerType())))
    write(table, pa.table({"id": pa.array([1, 2, 3], pa.int32())}))
    new = pa.table({"id": [2**40], "x": ["a"]})
    write(table, new, mode="overwrite", overwrite_filter="id = 2", schema_mode="merge")
    assert rows(table) == [{"id": 1, "x": None}, {"id": 2**40, "x": "a"}, {"id": 3, "x": None}]
    assert len(table.snapshots()) == 2


def test_the_schema_is_overwritten_with_the_rows(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.int64())]))
    first = write(table, pa.table({"id": [1], "a": ["x"], "b": [1]}))
    new = pa.table({"b": ["text"], "id": [5], "c": [dt.date(2026, 1, 1)]})
    write(table, new, mode="overwrite", schema_mode="overwrite")
    assert rows(table) == [{"b": "text", "id": 5, "c": dt.date(2026, 1, 1)}]
    fields = {f.name: f.field_id for f in table.schema().fields}
    assert fields["id"] == 1
    assert fields["b"] > 3
    old = table.scan(snapshot_id=first.snapshot_id).to_arrow().to_pylist()
    assert old == [{"id": 1, "a": "x", "b": 1}]


def test_columns_that_the_table_is_built_on_cannot_be_overwritten(catalog: SqlCatalog) -> None:
    data = pa.table({"id": [1], "day": [dt.date(2026, 1, 1)], "v": [1]})
    dw.from_arrow(data).write_iceberg(
        "ns.t", catalog=catalog, create=True, partition_by="day", sort_by="v", identifier_fields=["id"]
    )
    table = catalog.load_table("ns.t")
    with pytest.raises(dw.SchemaError) as caught:
        write(table, pa.table({"x": [1]}), mode="overwrite", schema_mode="overwrite")
    assert [d.split(":")[0].split("'")[1] for d in caught.value.differences] == ["day", "v", "id"]
    assert len(table.refresh().schemas()) == 1


def test_a_merge_after_a_concurrent_rename_and_append(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64()), ("a", pa.string())]))
    with dw.open_writer(dw.IcebergTarget(table, schema_mode="merge")) as writer:
        writer.write(pa.table({"id": [1], "a": ["x"], "new": [1.5]}))
        other = catalog.load_table("ns.t")
        with other.update_schema() as update:
            update.rename_column("a", "b")
        other.append(pa.table({"id": [2], "b": ["y"]}))
    assert rows(table) == [{"id": 1, "b": "x", "new": 1.5}, {"id": 2, "b": "y", "new": None}]


def test_two_merges_of_the_same_column_both_land(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    with dw.open_writer(dw.IcebergTarget(table, schema_mode="merge")) as writer:
        writer.write(pa.table({"id": [1], "new": [1.5]}))
        write(catalog.load_table("ns.t"), pa.table({"id": [2], "new": [2.5]}), schema_mode="merge")
    assert rows(table) == [{"id": 1, "new": 1.5}, {"id": 2, "new": 2.5}]
    assert len(table.schemas()) == 2


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"id": [2], "else": [2.5]}, "field id 2 was kept for column 'new' and is column 'else' now"),
        ({"id": [2], "new": ["text"]}, "column 'new'"),
    ],
)
def test_field_ids_given_away_meanwhile_are_a_conflict(
    catalog: SqlCatalog, tmp_path: Path, other: dict[str, Any], reason: str
) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(dw.CommitConflict, match=reason) as caught:
        with dw.open_writer(dw.IcebergTarget(table, schema_mode="merge")) as writer:
            writer.write(pa.table({"id": [1], "new": [1.5]}))
            write(catalog.load_table("ns.t"), pa.table(other), schema_mode="merge")
    assert len(caught.value.files) == 1
    assert len([f for f in files_below(tmp_path) if f.endswith(".parquet")]) == 1
    assert [r["id"] for r in rows(table)] == [2]


def test_a_schema_that_moved_is_not_overwritten(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(dw.CommitConflict, match="schema changed meanwhile"):
        with dw.open_writer(dw.IcebergTarget(table, mode="overwrite", schema_mode="overwrite")) as writer:
            writer.write(pa.table({"x": [1]}))
            with catalog.load_table("ns.t").update_schema() as update:
                update.add_column("y", LongType())


def test_an_empty_source_still_brings_its_columns(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("id", pa.int64())]))
    write(table, pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.int32())}), schema_mode="merge")
    assert table.refresh().schema().column_names == ["id", "x"]
