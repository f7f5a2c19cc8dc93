"""What hostile input and reviews have found, each with the right outcome."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ForbiddenError, TableAlreadyExistsError
from pyiceberg.types import LongType

import daftwrite as dw
from tests.conftest import files_below

pytestmark = pytest.mark.anyio

ONE = pa.table({"a": [1]})


@pytest.mark.parametrize("create", [False, True])
async def test_a_task_cancelled_by_asyncio_during_the_commit_loses_nothing(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    if not create:
        catalog.create_table("ns.t", ONE.schema)
    original = SqlCatalog.commit_table
    reached = threading.Event()

    def slow(self: SqlCatalog, *arguments: Any) -> Any:
        reached.set()
        time.sleep(0.5)
        return original(self, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", slow)
    task = asyncio.create_task(dw.from_arrow(ONE).write_iceberg_async("ns.t", catalog=catalog, create=create))
    await asyncio.to_thread(reached.wait, 20)
    task.cancel()
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert catalog.load_table("ns.t").scan().to_arrow().to_pylist() == [{"a": 1}]


@pytest.mark.parametrize("create", [False, True])
def test_a_refusal_of_a_commit_that_had_landed_is_success(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, create: bool
) -> None:
    if not create:
        catalog.create_table("ns.t", ONE.schema, properties={"commit.retry.num-retries": "0"})
    original = SqlCatalog.commit_table

    def landed_but_refused(self: SqlCatalog, *arguments: Any) -> Any:
        original(self, *arguments)
        raise TableAlreadyExistsError("there already") if create else CommitFailedException("409 after a lost answer")

    monkeypatch.setattr(SqlCatalog, "commit_table", landed_but_refused)
    result = dw.from_arrow(ONE).write_iceberg("ns.t", catalog=catalog, create=create)
    table = catalog.load_table("ns.t")
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [result.snapshot_id]
    assert table.scan().to_arrow().to_pylist() == [{"a": 1}]


def test_an_empty_table_whose_creation_was_answered_wrongly(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = SqlCatalog.commit_table

    def lost(self: SqlCatalog, *arguments: Any) -> Any:
        original(self, *arguments)
        raise ConnectionError("reset")

    monkeypatch.setattr(SqlCatalog, "commit_table", lost)
    assert dw.from_arrow(ONE.slice(1)).write_iceberg("ns.t", catalog=catalog, create=True).snapshot_id is None
    assert catalog.table_exists("ns.t")


def test_a_forbidden_commit_is_a_refusal(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table = catalog.create_table("ns.t", ONE.schema)
    before = files_below(tmp_path)

    def forbid(self: SqlCatalog, *arguments: Any) -> Any:
        raise ForbiddenError("no")

    monkeypatch.setattr(SqlCatalog, "commit_table", forbid)
    with pytest.raises(dw.CommitConflict):
        dw.from_arrow(ONE).write_iceberg(table)
    assert files_below(tmp_path) == before


def test_a_column_that_becomes_required_between_check_and_commit(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    original = SqlCatalog.commit_table
    calls: list[int] = []

    def evolve_first(self: SqlCatalog, *arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            with self.load_table("ns.t").update_schema(allow_incompatible_changes=True) as update:
                update.update_column("b", required=True)
        return original(self, *arguments)

    monkeypatch.setattr(SqlCatalog, "commit_table", evolve_first)
    with pytest.raises(dw.CommitConflict, match="'b' became required"):
        dw.from_arrow(ONE).write_iceberg(table)
    assert catalog.load_table("ns.t").current_snapshot() is None


def test_a_dropped_partition_source_is_refused(catalog: SqlCatalog) -> None:
    data = pa.table({"id": [1], "c": ["a"]})
    table = catalog.create_table("ns.t", data.schema, properties={"format-version": "1"})
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[4]", "id_b")
    with table.update_spec() as spec:
        spec.remove_field("id_b")
    with table.update_schema(allow_incompatible_changes=True) as schema:
        schema.delete_column("id")
    with pytest.raises(dw.ConfigError, match="'id_b'"):
        dw.from_arrow(data.select(["c"])).write_iceberg(catalog.load_table("ns.t"))


def test_commit_properties_are_checked_before_the_first_byte(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("ns.t", ONE.schema, properties={"commit.retry.num-retries": "x"})
    before = files_below(tmp_path)
    with pytest.raises(dw.ConfigError, match=r"commit.retry.num-retries must be a number"):
        dw.from_arrow(ONE).write_iceberg(table)
    assert files_below(tmp_path) == before


def test_an_optional_struct_with_a_required_field_may_be_missing(catalog: SqlCatalog) -> None:
    kind = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    table = catalog.create_table("ns.t", pa.schema([pa.field("id", pa.int64()), pa.field("s", kind)]))
    dw.from_arrow(pa.table({"id": [1]})).write_iceberg(table)
    dw.from_arrow(pa.table({"id": [2], "s": pa.nulls(1)})).write_iceberg(table)
    assert {row["id"]: row["s"] for row in table.refresh().scan().to_arrow().to_pylist()} == {1: None, 2: None}
    assert table.schema().find_field("s.x").field_type == LongType()


async def test_a_batch_that_comes_while_the_writer_ends_is_written_or_refused(tmp_path: Path) -> None:
    big = pa.table({"a": list(range(300_000))})
    outcome: list[str] = []
    async with dw.open_writer(dw.ParquetTarget(tmp_path / "out"), memory="1 MiB") as writer:
        await writer.write(ONE)

        async def late() -> None:
            try:
                await writer.write(big)
                outcome.append("written")
            except dw.WriterClosed:
                outcome.append("refused")

        task = asyncio.create_task(late())
        await asyncio.sleep(0)
    await task
    rows = ds.dataset(tmp_path / "out").count_rows()
    assert (outcome, rows) in [(["written"], 300_001), (["refused"], 1)]


@pytest.mark.parametrize("item", [None, "text", 5, pa.array([1])])
def test_an_iterator_of_anything_else_is_refused(item: object, tmp_path: Path) -> None:
    with pytest.raises(dw.ConfigError):
        dw.from_arrow([ONE, item, ONE]).write_parquet(tmp_path / "out")
    assert files_below(tmp_path) == []


def test_what_can_be_read_once_is_written_once(tmp_path: Path) -> None:
    for name, data in (("i", iter([ONE])), ("r", ONE.to_reader())):
        frame = dw.from_arrow(data)
        frame.write_parquet(tmp_path / name)
        with pytest.raises(dw.ConfigError, match="only once"):
            frame.write_parquet(tmp_path / f"{name}2")


def test_a_failure_while_a_batch_is_taken_ends_an_idle_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daftwrite.storage.local import LocalUpload

    def fail(self: LocalUpload, pieces: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LocalUpload, "_append", fail)
    idle = threading.Event()

    def source() -> Iterator[pa.Table]:
        for _ in range(3):
            yield pa.table({"a": list(range(200_000))})
        idle.wait(30)

    begun = time.monotonic()
    with pytest.raises(dw.StoreError, match="No space left"):
        dw.from_arrow(source()).write_parquet(tmp_path / "out", memory="1 MiB")
    idle.set()
    assert time.monotonic() - begun < 25


def test_budgets_of_shared_resources_return_to_zero_after_failures(tmp_path: Path) -> None:
    shared = dw.Resources("1 MiB")

    def source() -> Iterator[pa.Table]:
        for i in range(20):
            yield pa.table({"p": [k % 7 for k in range(3000)], "a": list(range(3000))})
            if i == 15:
                raise RuntimeError

    with pytest.raises(RuntimeError):
        dw.from_arrow(source()).write_parquet(tmp_path / "out", partition_by="p", memory=shared)
    assert (shared.budget.in_use, shared.engine.in_use) == (0, 0)


def test_frames_of_files_share_a_budget(tmp_path: Path) -> None:
    shared = dw.Resources("512 MiB")
    pq.write_table(pa.table({"a": list(range(100_000))}), tmp_path / "in.parquet")
    frame = dw.read_parquet(tmp_path / "in.parquet")
    threads = [
        threading.Thread(target=frame.write_parquet, args=(tmp_path / str(i),), kwargs={"memory": shared})
        for i in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [ds.dataset(tmp_path / str(i)).count_rows() for i in range(6)] == [100_000] * 6
    assert 0 < shared.engine.peak <= shared.engine.limit
    assert (shared.budget.in_use, shared.engine.in_use) == (0, 0)


def test_nanoseconds_stay_in_hive_paths(tmp_path: Path) -> None:
    data = pa.table({"k": pa.array([1, 2, 1000], pa.timestamp("ns")), "i": [1, 2, 3]})
    result = dw.from_arrow(data).write_parquet(tmp_path / "out", partition_by="k")
    assert [file.partition["k"] for file in result.files] == [
        "1970-01-01T00:00:00.000000001",
        "1970-01-01T00:00:00.000000002",
        "1970-01-01T00:00:00.000001",
    ]


@pytest.mark.parametrize("text", ["", "__HIVE_DEFAULT_PARTITION__"])
def test_text_that_reads_as_null_in_a_path_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(dw.DataError, match="partition 'k'"):
        dw.from_arrow(pa.table({"k": ["a", text], "i": [1, 2]})).write_parquet(tmp_path / "out", partition_by="k")
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**62], pa.timestamp("us")),
        pa.array([10**12], pa.timestamp("s", "UTC")),
        pa.array([2**31 - 1], pa.int32()).cast(pa.date32()),
    ],
)
def test_times_without_a_text_are_refused_in_csv(column: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(dw.DataError, match="column 't'"):
        dw.from_arrow(pa.table({"t": column})).write_csv(tmp_path / "out")
    assert files_below(tmp_path) == []


def test_times_at_the_ends_of_their_text(tmp_path: Path) -> None:
    values = pa.array([-719_162, 2_932_896], pa.int32()).cast(pa.date32())
    dw.from_arrow(pa.table({"t": values})).write_csv(tmp_path / "out")
    assert next((tmp_path / "out").iterdir()).read_text() == "t\n0001-01-01\n9999-12-31\n"


def test_an_empty_text_alone_on_its_line_is_quoted(tmp_path: Path) -> None:
    dw.from_arrow(pa.table({"t": ["a", "", None]})).write_csv(tmp_path / "out", null_text="NA")
    assert next((tmp_path / "out").iterdir()).read_text() == 't\na\n""\nNA\n'


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()])
def test_truncate_below_the_least_value_is_refused(kind: pa.DataType, catalog: SqlCatalog) -> None:
    least = -(2 ** (kind.bit_width - 1))
    data = pa.table({"v": pa.array([least], kind)})
    with pytest.raises(dw.DataError, match="column 'v'"):
        dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True, partition_by=[dw.truncate(10, "v")])


def test_values_under_a_null_struct_are_not_looked_at(tmp_path: Path, catalog: SqlCatalog) -> None:
    kind = pa.struct([pa.field("x", pa.uint32())])
    hidden = pa.StructArray.from_arrays(
        [pa.array([2**32 - 1, 5], pa.uint32())], fields=list(kind), mask=pa.array([True, False])
    )
    table = catalog.create_table("ns.t", pa.schema([("s", pa.struct([("x", pa.int32())]))]))
    dw.from_arrow(pa.table({"s": hidden})).write_iceberg(table)
    assert table.refresh().scan().to_arrow()["s"].to_pylist() == [None, {"x": 5}]


def test_invalid_utf8_and_negative_scales_are_refused_by_name(tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(dw.DataError, match="column 's'"):
        dw.from_arrow(pa.table({"s": broken})).write_parquet(tmp_path / "out")
    with pytest.raises(dw.SchemaError, match="column 'd'"):
        dw.from_arrow(pa.table({"d": pa.array([100], pa.decimal128(5, -2))})).write_parquet(tmp_path / "out")
    assert files_below(tmp_path) == []


def test_many_threads_append_to_one_directory(tmp_path: Path) -> None:
    path = tmp_path / "out"
    dw.from_arrow(ONE).write_parquet(path)
    errors: list[BaseException] = []

    def append() -> None:
        try:
            for _ in range(6):
                dw.from_arrow(ONE).write_parquet(path, mode="append")
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=append) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert duckdb.sql(f"select count(*) from read_parquet('{path}/*.parquet')").fetchall() == [(37,)]
