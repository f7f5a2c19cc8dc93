"""Concurrency and the outcomes of commits."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as it
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, CommitStateUnknownException
from pyiceberg.table import Table
from pyiceberg.transforms import (
    BucketTransform,
)

import daftwrite as dw
from tests.conftest import files_below


def rows_of(table: Table) -> list[dict[str, Any]]:
    return table.refresh().scan().to_arrow().to_pylist()


def test_writers_of_many_threads_all_land(catalog: SqlCatalog) -> None:
    catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for i in range(4):
                dw.from_arrow(pa.table({"a": [10 * number + i]})).write_iceberg("ns.t", catalog=catalog)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    table = catalog.load_table("ns.t")
    assert sorted(row["a"] for row in rows_of(table)) == sorted(10 * n + i for n in range(4) for i in range(4))
    assert len(table.snapshots()) == 16


def test_a_spec_that_evolves_meanwhile_keeps_files_under_their_own(catalog: SqlCatalog) -> None:
    data = pa.table({"a": [1, 2], "b": [3, 4]})
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True, partition_by=["a"])
    with dw.open_writer(catalog.load_table("ns.t")) as writer:
        writer.write(data)
        with catalog.load_table("ns.t").update_spec() as update:
            update.add_field("b", BucketTransform(4), "bb")
    table = catalog.load_table("ns.t")
    files = [task.file for task in table.scan().plan_files()]
    assert {file.spec_id for file in files} == {0}
    assert {len(file.partition) for file in files} == {1}
    assert len(rows_of(table)) == 4


def test_a_column_added_meanwhile_is_fine_and_a_changed_one_is_a_conflict(catalog: SqlCatalog, tmp_path: Path) -> None:
    data = pa.table({"a": pa.array([1], pa.int32())})
    table = catalog.create_table("ns.t", data.schema)
    with dw.open_writer(table) as writer:
        writer.write(data)
        with catalog.load_table("ns.t").update_schema() as update:
            update.add_column("b", it.StringType())
            update.update_column("a", it.LongType())
    assert rows_of(table) == [{"a": 1, "b": None}]
    with pytest.raises(dw.CommitConflict, match="'c' is new and required") as caught:
        with dw.open_writer(catalog.load_table("ns.t")) as writer:
            writer.write(pa.table({"a": [1]}))
            with catalog.load_table("ns.t").update_schema(allow_incompatible_changes=True) as update:
                update.add_column("c", it.StringType(), required=True)
    assert len(caught.value.files) == 1
    assert not Path(caught.value.files[0].path.removeprefix("file://")).exists()


@pytest.mark.parametrize("options", [{}, {"mode": "overwrite", "overwrite_filter": "a = 1"}, {"schema_mode": "merge"}])
@pytest.mark.parametrize("how", ["dropped", "replaced"])
def test_a_column_dropped_meanwhile_is_a_conflict(catalog: SqlCatalog, options: dict[str, Any], how: str) -> None:
    data = pa.table({"a": [1], "v": ["x"]})
    table = catalog.create_table("ns.t", data.schema)
    dw.from_arrow(data).write_iceberg(table)
    with pytest.raises(dw.CommitConflict, match="column 'v' was dropped"):  # the write is the block
        with dw.open_writer(dw.IcebergTarget(table, **options)) as writer:
            writer.write(data)
            if how == "replaced":
                dw.from_arrow(data.select(["a"])).write_iceberg("ns.t", catalog=catalog, create="or_replace")
            else:
                with catalog.load_table("ns.t").update_schema() as update:
                    update.delete_column("v")
    assert rows_of(catalog.load_table("ns.t")) == [{"a": 1}]


@pytest.mark.parametrize("recreated", [False, True])
def test_a_table_dropped_meanwhile_is_a_conflict(catalog: SqlCatalog, tmp_path: Path, recreated: bool) -> None:
    schema = pa.schema([("a", pa.int64())])
    table = catalog.create_table("ns.t", schema)
    before = files_below(tmp_path)
    with pytest.raises(dw.CommitConflict, match="ns.t: (the table was dropped|another table)"):
        with dw.open_writer(table) as writer:
            writer.write(pa.table({"a": [1]}))
            catalog.drop_table("ns.t")
            if recreated:
                catalog.create_table("ns.t", schema)
                before = files_below(tmp_path)
                before = [
                    name for name in before if not name.endswith(".parquet.tmp") and not name.endswith(".parquet")
                ]
    assert files_below(tmp_path) == before


def test_a_table_made_by_another_meanwhile_is_a_conflict(catalog: SqlCatalog, tmp_path: Path) -> None:
    target = dw.IcebergTarget("ns.t", catalog=catalog, create=True)
    with pytest.raises(dw.CommitConflict, match="refused to create"), dw.open_writer(target) as writer:
        writer.write(pa.table({"a": [1]}))
        catalog.create_table("ns.t", pa.schema([("other", pa.int64())]))
    assert catalog.load_table("ns.t").schema().column_names == ["other"]
    assert [f for f in files_below(tmp_path) if f.endswith((".parquet", ".avro"))] == []


@pytest.mark.parametrize(("properties", "refusals"), [({}, 6), ({"commit.retry.num-retries": "2"}, 2)])
def test_refusals_are_tried_again(
    catalog: SqlCatalog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    properties: dict[str, str],
    refusals: int,
) -> None:
    quick = {"commit.retry.min-wait-ms": "1", "commit.retry.max-wait-ms": "5"}
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties={**quick, **properties})
    original = SqlCatalog.commit_table
    calls = []

    def flaky(self: SqlCatalog, *args: Any) -> Any:
        calls.append(1)
        if len(calls) <= refusals:
            raise CommitFailedException("somebody was faster")
        return original(self, *args)

    monkeypatch.setattr(SqlCatalog, "commit_table", flaky)
    dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    assert len(calls) == refusals + 1
    assert len(table.refresh().snapshots()) == 1
    assert len([f for f in files_below(tmp_path) if f.endswith(".avro")]) == 2


def test_a_definite_refusal_leaves_nothing(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties={"commit.retry.num-retries": "0"})
    before = files_below(tmp_path)

    def refuse(self: SqlCatalog, *args: Any) -> Any:
        raise CommitFailedException("no")

    monkeypatch.setattr(SqlCatalog, "commit_table", refuse)
    with pytest.raises(dw.CommitConflict, match="refused") as caught:
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    assert isinstance(caught.value.__cause__, CommitFailedException)
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("error", [CommitStateUnknownException("lost"), ConnectionError("reset")])
def test_a_lost_response_of_a_landed_commit_is_success(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, error: Exception, create: bool
) -> None:
    if not create:
        catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    original = SqlCatalog.commit_table

    def lose(self: SqlCatalog, *args: Any) -> Any:
        original(self, *args)
        raise error

    monkeypatch.setattr(SqlCatalog, "commit_table", lose)
    result = dw.from_arrow(pa.table({"a": [1]})).write_iceberg("ns.t", catalog=catalog, create=create)
    table = catalog.load_table("ns.t")
    assert [s.snapshot_id for s in table.snapshots()] == [result.snapshot_id]
    assert rows_of(table) == [{"a": 1}]


@pytest.mark.parametrize("create", [False, True])
def test_an_unknown_outcome_keeps_the_files(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, create: bool) -> None:
    if not create:
        catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))

    def unknown(self: SqlCatalog, *args: Any) -> Any:
        raise CommitStateUnknownException("gateway timeout")

    monkeypatch.setattr(SqlCatalog, "commit_table", unknown)
    with pytest.raises(dw.CommitStateUnknown, match="nobody can tell") as caught:
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg("ns.t", catalog=catalog, create=create)
    assert caught.value.write_id in str(caught.value)
    assert [Path(file.path.removeprefix("file://")).exists() for file in caught.value.files] == [True]
