"""The same writes on every kind of catalog, each a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog

import daftwrite as dw
from tests.catalog.hive import hive
from tests.catalog.servers import KEYS, glue, postgres, seaweed
from tests.catalog.vending import vending

# pyiceberg gives no way to name SQLAlchemy's pool of connections to a shared memory.
pytestmark = pytest.mark.filterwarnings("ignore:Selection of the SingletonThreadPool")


@contextmanager
def memory(folder: Path) -> Iterator[dict[str, str]]:
    uri = "sqlite:///file:served?mode=memory&cache=shared&uri=true"
    yield {"type": "in-memory", "uri": uri, "warehouse": f"file://{folder}"}


WRONG = {"s3.access-key-id": "nobody", "s3.secret-access-key": "nothing"}


@contextmanager
def seaweed_that_vends(folder: Path, field: str) -> Iterator[dict[str, str]]:
    with seaweed(folder) as properties, vending(properties["uri"], KEYS, field) as front:
        yield {**properties, "uri": front, **WRONG}


SERVED = ["memory", "postgres", "rest", "rest-config", "rest-storage-credentials", "glue"]


@pytest.fixture(scope="module", params=[*SERVED, pytest.param("hive", marks=pytest.mark.interop)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    folder = tmp_path_factory.mktemp("served")
    kinds: dict[str, Any] = {
        "memory": lambda: memory(folder),
        "postgres": lambda: postgres(folder),
        "rest": lambda: seaweed(folder),
        "rest-config": lambda: seaweed_that_vends(folder, "config"),
        "rest-storage-credentials": lambda: seaweed_that_vends(folder, "storage-credentials"),
        "glue": glue,
        "hive": lambda: hive(folder),
    }
    with kinds[request.param]() as properties:
        catalog = load_catalog("served", **properties)
        catalog.create_namespace("ns")
        yield catalog
        catalog.close()


def rows(catalog: Catalog, name: str) -> list[tuple[Any, ...]]:
    found = catalog.load_table(name).scan().to_arrow().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=repr)


DATA = pa.table({"id": [1, 2, 3], "kind": ["a", "b", None]})


def test_a_table_is_made_and_filled_in_one_commit(served: Catalog) -> None:
    result = dw.from_arrow(DATA).write_iceberg("ns.made", catalog=served, create=True, partition_by="kind")
    table = served.load_table("ns.made")
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [result.snapshot_id]
    assert rows(served, "ns.made") == [(1, "a"), (2, "b"), (3, None)]


def test_rows_are_appended_and_overwritten(served: Catalog) -> None:
    dw.from_arrow(DATA).write_iceberg("ns.kept", catalog=served, create=True)
    dw.from_arrow(DATA).write_iceberg("ns.kept", catalog=served)
    new = dw.from_arrow(pa.table({"id": [9], "kind": ["z"]}))
    new.write_iceberg("ns.kept", catalog=served, mode="overwrite", overwrite_filter="id < 3")
    assert rows(served, "ns.kept") == [(3, None), (3, None), (9, "z")]
    assert len(served.load_table("ns.kept").snapshots()) == 3


def test_a_schema_is_merged_in_the_commit_of_its_data(served: Catalog) -> None:
    dw.from_arrow(DATA).write_iceberg("ns.wider", catalog=served, create=True)
    wider = pa.table({"id": [4], "kind": ["d"], "note": ["new"]})
    dw.from_arrow(wider).write_iceberg("ns.wider", catalog=served, schema_mode="merge")
    assert rows(served, "ns.wider") == [(1, "a", None), (2, "b", None), (3, None, None), (4, "d", "new")]


def test_partitions_are_replaced(served: Catalog) -> None:
    dw.from_arrow(DATA).write_iceberg("ns.parts", catalog=served, create=True, partition_by="kind")
    new = dw.from_arrow(pa.table({"id": [30], "kind": pa.array([None], pa.string())}))
    new.write_iceberg("ns.parts", catalog=served, mode="overwrite_partitions")
    assert rows(served, "ns.parts") == [(1, "a"), (2, "b"), (30, None)]


def test_a_stale_handle_is_refreshed(served: Catalog) -> None:
    dw.from_arrow(DATA).write_iceberg("ns.stale", catalog=served, create=True)
    stale = served.load_table("ns.stale")
    dw.from_arrow(DATA).write_iceberg("ns.stale", catalog=served)
    dw.from_arrow(DATA).write_iceberg(stale)
    assert len(rows(served, "ns.stale")) == 9


def test_a_source_that_raises_leaves_no_table(served: Catalog) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield DATA.to_batches()[0]
        raise RuntimeError("gone")

    with pytest.raises(RuntimeError, match="gone"):
        dw.from_arrow(batches()).write_iceberg("ns.never", catalog=served, create=True)
    assert not served.table_exists("ns.never")


@pytest.mark.parametrize("handle", [False, True], ids=["name", "table"])
def test_memory_of_one_thread_is_refused(tmp_path: Path, handle: bool) -> None:
    catalog = load_catalog("mine", type="in-memory", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", DATA.schema)
    with pytest.raises(dw.ConfigError, match=r"file:mine\?mode=memory&cache=shared"):
        dw.from_arrow(DATA).write_iceberg(table if handle else "ns.t", catalog=None if handle else catalog)
    catalog.close()


def test_wrong_keys_of_the_catalog_are_refused_where_none_are_vended(tmp_path: Path) -> None:
    with seaweed(tmp_path) as properties:
        catalog = load_catalog("wrong", **{**properties, **WRONG})
        catalog.create_namespace("ns")
        with pytest.raises(dw.DaftwriteError):
            dw.from_arrow(DATA).write_iceberg("ns.t", catalog=catalog, create=True)
        catalog.close()
