"""Branches, staged snapshots and what users put into a snapshot's summary."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import daftwrite as dw

SCHEMA = pa.schema([("id", pa.int64())])


def write(table: Table, *ids: int, **options: Any) -> dw.WriteResult:
    return dw.from_arrow(pa.table({"id": ids}, schema=SCHEMA)).write_iceberg(table, **options)


def ids(table: Table, branch: str | None = None) -> list[int]:
    scan = table.refresh().scan()
    found: list[int] = (scan.use_ref(branch) if branch else scan).to_arrow()["id"].to_pylist()
    return sorted(found)


def test_a_new_branch_starts_from_main(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1)
    result = write(table, 2, branch="audit")
    assert ids(table) == [1]
    assert ids(table, "audit") == [1, 2]
    snapshot = table.snapshot_by_name("audit")
    assert snapshot.snapshot_id == result.snapshot_id
    assert snapshot.parent_snapshot_id == table.current_snapshot().snapshot_id
    assert snapshot.summary["total-records"] == "2"


def test_branches_grow_apart(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1)
    write(table, 2, branch="audit")
    write(table, 3)
    write(table, 4, branch="audit")
    write(table, 5, branch="audit", mode="overwrite", overwrite_filter="id = 1")
    assert ids(table) == [1, 3]
    assert ids(table, "audit") == [2, 4, 5]


def test_a_branch_of_an_empty_table(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1, branch="audit")
    assert table.refresh().current_snapshot() is None
    assert ids(table, "audit") == [1]


def test_what_a_branch_says_of_retention_stays(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1)
    head = table.refresh().current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "kept", 10**9, 10**8, 7).commit()
    write(table, 2, branch="kept")
    ref = table.refresh().metadata.refs["kept"]
    assert (ref.max_ref_age_ms, ref.max_snapshot_age_ms, ref.min_snapshots_to_keep) == (10**9, 10**8, 7)


def test_a_tag_is_no_branch(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1)
    table.manage_snapshots().create_tag(table.refresh().current_snapshot().snapshot_id, "v1").commit()
    with pytest.raises(dw.ConfigError, match="'v1' of table ns.t is a tag"):
        write(table, 2, branch="v1")


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_staged_snapshot_is_seen_by_nobody_until_it_is_published(catalog: SqlCatalog, mode: str) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1)
    result = write(table, 2, mode=mode, stage_only=True, snapshot_properties={"wap.id": "nightly"})
    assert ids(table) == [1]
    staged = table.snapshot_by_id(result.snapshot_id)
    assert staged.parent_snapshot_id == table.current_snapshot().snapshot_id
    assert staged.summary["wap.id"] == "nightly"
    wanted = [1, 2] if mode == "append" else [2]
    assert sorted(table.scan(snapshot_id=result.snapshot_id).to_arrow()["id"].to_pylist()) == wanted
    table.manage_snapshots().set_current_snapshot(snapshot_id=result.snapshot_id).commit()
    assert ids(table) == wanted


def test_a_table_that_wants_audits_refuses_writes_to_main(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA, properties={"write.wap.enabled": "true"})
    with pytest.raises(dw.ConfigError, match="write.wap.enabled"):
        write(table, 1)
    write(table, 1, stage_only=True)
    write(table, 2, branch="audit")
    assert ids(table, "audit") == [2]


def test_snapshot_properties_stand_in_the_summary(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    result = write(table, 1, snapshot_properties={"job": "nightly", "run": "7"})
    summary = table.refresh().current_snapshot().summary
    assert (summary["job"], summary["run"]) == ("nightly", "7")
    assert summary["daftwrite.write-id"] == result.write_id


def test_a_write_to_a_branch_conflicts_only_with_that_branch(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", SCHEMA)
    write(table, 1, 2)
    write(table, 3, branch="audit")
    with dw.open_writer(dw.IcebergTarget(table, mode="overwrite", branch="audit")) as writer:
        writer.write(pa.table({"id": [9]}))
        write(catalog.load_table("ns.t"), 4)
    assert ids(table, "audit") == [9]
    assert ids(table) == [1, 2, 4]


def test_a_staged_snapshot_of_a_new_table(catalog: SqlCatalog) -> None:
    data = dw.from_arrow(pa.table({"id": [1]}))
    result = data.write_iceberg("ns.t", catalog=catalog, create=True, stage_only=True)
    table = catalog.load_table("ns.t")
    assert table.current_snapshot() is None
    assert table.scan(snapshot_id=result.snapshot_id).to_arrow().num_rows == 1


def test_a_branch_of_a_new_table(catalog: SqlCatalog) -> None:
    data = dw.from_arrow(pa.table({"id": [1]}))
    data.write_iceberg("ns.t", catalog=catalog, create=True, branch="audit")
    table = catalog.load_table("ns.t")
    assert table.current_snapshot() is None
    assert ids(table, "audit") == [1]
