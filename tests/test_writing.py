from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import daftwrite as dw
from daftwrite.pipeline.events import BatchRead, Committed, Event, FileOpened, FilePublished, RowGroupEncoded
from tests.conftest import files_below

pytestmark = pytest.mark.anyio

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


def batch(start: int, rows: int = 1000) -> pa.RecordBatch:
    ids = range(start, start + rows)
    return pa.record_batch({"id": list(ids), "text": [f"row {i}" for i in ids]}, SCHEMA)


class Boom(Exception):
    pass


TARGETS = [
    "iceberg",
    "iceberg partitioned",
    "parquet",
    "parquet partitioned",
    "parquet append",
    "csv",
    "csv zstd",
]


def make_target(kind: str, catalog: SqlCatalog, tmp_path: Path) -> Any:
    field = dw.bucket(3, "id")
    if kind.startswith("iceberg"):
        by = [field] if "partitioned" in kind else None
        return dw.IcebergTarget("ns.t", catalog=catalog, create=True, partition_by=by)
    if kind == "parquet append":
        dw.from_arrow(pa.table({"id": [1], "text": ["old"]})).write_parquet(tmp_path / "out")
        return dw.ParquetTarget(tmp_path / "out", mode="append")
    if kind.startswith("parquet"):
        return dw.ParquetTarget(tmp_path / "out", partition_by=[field] if "partitioned" in kind else None)
    return dw.CsvTarget(tmp_path / "out")


def written_rows(kind: str, catalog: SqlCatalog, tmp_path: Path) -> int:
    if kind.startswith("iceberg"):
        if not catalog.table_exists("ns.t"):
            return 0
        return int(catalog.load_table("ns.t").scan().to_arrow().num_rows)
    if not (tmp_path / "out").exists():
        return 0
    if kind.startswith("parquet"):
        return int(ds.dataset(tmp_path / "out", partitioning="hive").count_rows()) - (kind == "parquet append")
    return int(duckdb.sql(f"select count(*) from read_csv('{tmp_path}/out/*')").fetchall()[0][0])


def options(kind: str) -> dict[str, Any]:
    return {"compression": "zstd"} if kind == "csv zstd" else {}


def assert_no_trace(before: list[str], catalog: SqlCatalog, tmp_path: Path, kind: str) -> None:
    assert files_below(tmp_path) == before
    assert written_rows(kind, catalog, tmp_path) == 0


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("batches", [0, 1, 7])
async def test_a_source_that_raises_leaves_no_trace(
    kind: str, batches: int, catalog: SqlCatalog, tmp_path: Path
) -> None:
    target = make_target(kind, catalog, tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(Boom, match="the source's own") as caught:
        async with dw.open_writer(target, memory="1 MiB", target_file_size="20 KiB", **options(kind)) as writer:
            for i in range(batches):
                await writer.write(batch(1000 * i))
            raise Boom("the source's own")
    assert caught.value.__cause__ is None
    assert_no_trace(before, catalog, tmp_path, kind)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("batches", [0, 3, 12])
async def test_a_cancelled_write_leaves_no_trace(kind: str, batches: int, catalog: SqlCatalog, tmp_path: Path) -> None:
    target = make_target(kind, catalog, tmp_path)
    before = files_below(tmp_path)
    reached = asyncio.Event()

    async def source() -> None:
        async with dw.open_writer(target, memory="1 MiB", target_file_size="20 KiB", **options(kind)) as writer:
            for i in range(batches):
                await writer.write(batch(1000 * i))
            reached.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(source())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert_no_trace(before, catalog, tmp_path, kind)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("delay", [0.0, 0.005, 0.03])
async def test_cancelling_at_any_time_is_all_or_nothing(
    kind: str, delay: float, catalog: SqlCatalog, tmp_path: Path
) -> None:
    target = make_target(kind, catalog, tmp_path)
    before = files_below(tmp_path)
    finished = False
    with anyio.move_on_after(delay):
        async with dw.open_writer(target, memory="1 MiB", target_file_size="20 KiB", **options(kind)) as writer:
            for i in range(20):
                await writer.write(batch(1000 * i))
        finished = True
    if finished:
        assert written_rows(kind, catalog, tmp_path) == 20_000
    elif written_rows(kind, catalog, tmp_path) != 20_000:
        assert_no_trace(before, catalog, tmp_path, kind)


@pytest.mark.parametrize("kind", TARGETS)
async def test_the_async_writer_writes_all_rows(kind: str, catalog: SqlCatalog, tmp_path: Path) -> None:
    async with dw.open_writer(make_target(kind, catalog, tmp_path), memory="1 MiB", **options(kind)) as writer:
        for i in range(10):
            await writer.write(batch(1000 * i))
        with pytest.raises(dw.WriterClosed):
            _ = writer.result
    assert writer.result.rows == 10_000
    assert written_rows(kind, catalog, tmp_path) == 10_000
    with pytest.raises(dw.WriterClosed):
        await writer.write(batch(0))


@pytest.mark.parametrize("kind", TARGETS)
def test_the_sync_writer_writes_all_rows(kind: str, catalog: SqlCatalog, tmp_path: Path) -> None:
    with dw.open_writer(make_target(kind, catalog, tmp_path), **options(kind)) as writer:
        for i in range(10):
            writer.write(batch(1000 * i))
    assert writer.result.rows == 10_000
    assert written_rows(kind, catalog, tmp_path) == 10_000
    with pytest.raises(dw.WriterClosed):
        writer.write(batch(0))


def test_the_sync_writer_passes_the_sources_exception_on(catalog: SqlCatalog, tmp_path: Path) -> None:
    before = files_below(tmp_path)
    with pytest.raises(Boom), dw.open_writer(make_target("iceberg", catalog, tmp_path)) as writer:
        writer.write(batch(0))
        raise Boom
    assert_no_trace(before, catalog, tmp_path, "iceberg")


async def test_each_writer_refuses_the_other_protocol(tmp_path: Path) -> None:
    async with dw.open_writer(dw.ParquetTarget(tmp_path / "a")) as writer:
        await writer.write(batch(0))
        with pytest.raises(dw.WriterClosed, match="async with"), writer:
            pass


def test_the_sync_writer_refuses_async_with(tmp_path: Path) -> None:
    with dw.open_writer(dw.ParquetTarget(tmp_path / "a")) as writer:
        writer.write(batch(0))

        async def enter() -> None:
            async with writer:
                pass

        with pytest.raises(dw.WriterClosed, match="'with'"):
            asyncio.run(enter())


async def test_concurrent_writes_are_served_in_order(tmp_path: Path) -> None:
    async with dw.open_writer(dw.ParquetTarget(tmp_path / "a"), memory="256 KiB") as writer:
        async with anyio.create_task_group() as tasks:
            for i in range(30):
                tasks.start_soon(writer.write, batch(1000 * i))
    (file,) = writer.result.files
    assert pq.read_table(file.path)["id"].to_pylist() == list(range(30_000))


async def test_a_write_cancelled_while_it_waits_its_turn_aborts_the_writer(tmp_path: Path) -> None:
    with pytest.raises(dw.WriterClosed):
        async with dw.open_writer(dw.ParquetTarget(tmp_path / "a"), memory="64 KiB") as writer:
            await writer.write(batch(0))
            first = asyncio.create_task(writer.write(batch(1000, 50_000)))
            second = asyncio.create_task(writer.write(batch(0)))
            await asyncio.sleep(0)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            with contextlib.suppress(dw.WriterClosed):
                await first
    assert files_below(tmp_path) == []


async def test_several_writes_share_resources(tmp_path: Path) -> None:
    shared = dw.Resources("1 MiB")
    table = pa.Table.from_batches([batch(1000 * i) for i in range(50)])

    async with anyio.create_task_group() as tasks:
        for name in "abcd":

            async def write(name: str = name) -> None:
                await dw.from_arrow(table).write_parquet_async(tmp_path / name, memory=shared)

            tasks.start_soon(write)
    assert shared.budget.in_use == 0
    assert shared.budget.peak <= shared.budget.limit
    for name in "abcd":
        assert ds.dataset(tmp_path / name).count_rows() == 50_000


def sources(table: pa.Table) -> dict[str, Callable[[], Any]]:
    def generate() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=100)

    async def generate_async() -> AsyncIterator[pa.RecordBatch]:
        for item in table.to_batches(max_chunksize=100):
            await asyncio.sleep(0)
            yield item

    class OneArray:
        def __arrow_c_array__(self, requested_schema: object = None) -> object:
            return table.combine_chunks().to_batches()[0].__arrow_c_array__()

    return {
        "table": lambda: table,
        "reader": lambda: table.to_reader(100),
        "record batch": lambda: table.combine_chunks().to_batches()[0],
        "array": OneArray,
        "polars": lambda: pl.from_arrow(table),
        "pandas": lambda: pd.DataFrame({"id": range(1000), "text": [f"row {i}" for i in range(1000)]}),
        "duckdb": lambda: duckdb.sql("select range::bigint as id, 'row ' || range as text from range(1000)"),
        "dataset": lambda: ds.dataset(table),
        "scanner": lambda: ds.dataset(table).scanner(),
        "list": lambda: table.to_batches(max_chunksize=10),
        "generator": generate,
        "async generator": generate_async,
        "polars frames": lambda: [pl.from_arrow(table)],
    }


@pytest.mark.parametrize("name", sources(pa.table({"a": [1]})))
def test_any_arrow_source_is_written(name: str, tmp_path: Path) -> None:
    table = pa.Table.from_batches([batch(0)])
    result = dw.from_arrow(sources(table)[name]()).write_parquet(tmp_path / "out")
    assert result.rows == 1000
    assert pq.read_table(tmp_path / "out")["text"].to_pylist() == table["text"].to_pylist()


@pytest.mark.parametrize("data", [5, "text", {"a": [1]}, pl.LazyFrame({"a": [1]}), [1, 2]])
def test_what_is_no_source_is_refused(data: object, tmp_path: Path) -> None:
    with pytest.raises(dw.ConfigError):
        dw.from_arrow(data).write_parquet(tmp_path / "out")
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("frame_kind", ["sync", "async"])
def test_a_generator_that_raises_is_passed_on_unwrapped(frame_kind: str, tmp_path: Path, catalog: SqlCatalog) -> None:
    before = files_below(tmp_path)

    def broken() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        yield batch(1000)
        raise Boom("mine")

    async def broken_async() -> AsyncIterator[pa.RecordBatch]:
        for item in broken():
            yield item

    data = broken() if frame_kind == "sync" else broken_async()
    with pytest.raises(Boom, match="mine"):
        dw.from_arrow(data).write_iceberg("new.t", catalog=catalog, create=True)
    assert files_below(tmp_path) == before
    assert catalog.list_namespaces() == [("ns",)]


async def test_a_source_that_hangs_is_left_alone_on_cancellation(tmp_path: Path) -> None:
    free = threading.Event()

    def hanging() -> Iterator[pa.RecordBatch]:
        yield batch(0)
        free.wait(30)

    with anyio.move_on_after(0.5) as scope:
        await dw.from_arrow(hanging()).write_parquet_async(tmp_path / "out")
    free.set()
    assert scope.cancelled_caught
    assert files_below(tmp_path) == []


async def test_a_failure_of_encoding_ends_a_hanging_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from daftwrite.formats.parquet import ParquetFormat

    def encode(self: ParquetFormat, table: pa.Table) -> None:
        raise Boom("encoding")

    monkeypatch.setattr(ParquetFormat, "encode", encode)
    free = threading.Event()

    def hanging() -> Iterator[pa.RecordBatch]:
        yield batch(0, 200_000)
        yield batch(0, 200_000)
        free.wait(30)

    with anyio.fail_after(20), pytest.raises(Boom, match="encoding"):
        await dw.from_arrow(hanging()).write_parquet_async(tmp_path / "out", memory="2 MiB")
    free.set()
    assert files_below(tmp_path) == []


def test_works_where_a_loop_is_running(tmp_path: Path) -> None:
    async def notebook() -> dw.WriteResult:
        return dw.from_arrow(pa.Table.from_batches([batch(0)])).write_parquet(tmp_path / "out")

    assert asyncio.run(notebook()).rows == 1000


def test_a_row_larger_than_the_budget_is_written(tmp_path: Path) -> None:
    table = pa.table({"blob": [bytes(300_000), b"x", bytes(500_000)]})
    result = dw.from_arrow(table).write_parquet(tmp_path / "out", memory="64 KiB")
    assert result.rows == 3
    assert pq.read_table(tmp_path / "out").equals(table)


def test_a_batch_of_another_schema_is_refused(tmp_path: Path) -> None:
    other = pa.record_batch({"id": [1], "other": ["x"]})
    with pytest.raises(dw.SchemaError, match="column 1: 'other' string instead of 'text' string"):
        dw.from_arrow([batch(0), other]).write_parquet(tmp_path / "out")
    assert files_below(tmp_path) == []


def test_events_tell_what_happens(tmp_path: Path) -> None:
    events: list[Event] = []
    result = dw.from_arrow([batch(0), batch(1000)]).write_parquet(tmp_path / "out", on_event=events.append)
    (file,) = result.files
    assert [type(event) for event in events] == [
        BatchRead, BatchRead, FileOpened, RowGroupEncoded, FilePublished, Committed,
    ]  # fmt: skip
    assert events[-2] == FilePublished(file.path, 2000, file.nbytes)
    assert Path(file.path).stat().st_size == file.nbytes


def test_a_listener_that_raises_is_detached(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls = []

    def listener(event: Event) -> None:
        calls.append(event)
        raise Boom

    assert dw.from_arrow(batch(0)).write_parquet(tmp_path / "out", on_event=listener).rows == 1000
    assert len(calls) == 1
    assert "detached" in caplog.text


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("target_file_size", 0),
        ("target_file_size", "12 apples"),
        ("row_group_size", -1),
        ("row_group_rows", 0),
        ("memory", "much"),
        ("compression", "lzo"),
        ("compression_level", 99),
        ("partition_by", [5]),
        ("mode", "replace"),
    ],
)
def test_wrong_options_are_refused_by_name(option: str, value: object, tmp_path: Path) -> None:
    given = {"compression": "zstd", option: value} if option == "compression_level" else {option: value}
    with pytest.raises(dw.ConfigError, match=option):
        dw.from_arrow(batch(0)).write_parquet(tmp_path / "out", **given)  # type: ignore[arg-type]  # one of many
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "options"),
    [
        (dw.ParquetTarget("out"), {"coerce_timestamps": "us"}),
        (dw.CsvTarget("out"), {"coerce_timestamps": "us"}),
        (dw.CsvTarget("out"), {"row_group_rows": 5}),
        (dw.CsvTarget("out"), {"compression_level": 5}),
        (dw.IcebergTarget("a.b"), {"coerce_timestamps": "s"}),
        (dw.IcebergTarget("a.b"), {"compression_level": 3}),
        (dw.IcebergTarget("a.b", mode="ignore"), {}),
        (dw.IcebergTarget("a.b", overwrite_filter="a = 1"), {}),
        (dw.IcebergTarget("a.b", mode="overwrite_partitions", overwrite_filter="a = 1"), {}),
        (dw.IcebergTarget("a.b", allow_empty=True), {}),
        (dw.IcebergTarget("a.b", schema_mode="evolve"), {}),
        (dw.IcebergTarget("a.b", schema_mode="overwrite"), {}),
        (dw.IcebergTarget("a.b", mode="overwrite", schema_mode="overwrite", overwrite_filter="a = 1"), {}),
        (dw.IcebergTarget("a.b", branch="x", stage_only=True), {}),
        (dw.IcebergTarget("a.b", branch=""), {}),
        (dw.IcebergTarget("a.b", create="replace"), {}),
        (dw.IcebergTarget("a.b", create="or_replace", mode="overwrite"), {}),
        (dw.IcebergTarget("a.b", create="or_replace", branch="x"), {}),
        (dw.IcebergTarget("a.b", sort_by="a"), {}),
        (dw.IcebergTarget("a.b", create=True, sort_by=[5]), {}),  # type: ignore[list-item]  # a wrong type is the point
        (dw.IcebergTarget("a.b", properties={"a": "b"}), {}),
        (dw.IcebergTarget("a.b", create=True, properties={"a": 1}), {}),  # type: ignore[dict-item]  # likewise
        (dw.IcebergTarget("a.b", identifier_fields=["a"]), {}),
        (dw.IcebergTarget("a.b", create=True, identifier_fields="a"), {}),
        (dw.IcebergTarget("a.b", snapshot_properties={"operation": "x"}), {}),
        (dw.IcebergTarget("a.b", snapshot_properties={"added-records": "1"}), {}),
        (dw.IcebergTarget("a.b", snapshot_properties={"total-records": "1"}), {}),
        (dw.IcebergTarget("a.b", snapshot_properties={"daftwrite.write-id": "1"}), {}),
        (dw.IcebergTarget("a.b", snapshot_properties={"k": 1}), {}),  # type: ignore[dict-item]  # likewise
        (dw.ParquetTarget("out", mode="overwrite_partitions"), {}),
        (dw.ParquetTarget("out", allow_empty=True), {}),
        (dw.ParquetTarget("out.parquet", mode="append"), {}),
        (dw.ParquetTarget("out.parquet", partition_by="a"), {}),
        (dw.ParquetTarget("out.parquet", write_metadata_file=True), {}),
        (dw.CsvTarget("out.csv", write_success_file=True), {}),
        (dw.CsvTarget("out.csv"), {"compression": "gzip"}),
        (dw.CsvTarget("out.csv.gz"), {"compression": "zstd"}),
        (dw.CsvTarget("out", quote_char=""), {}),
        (dw.CsvTarget("out", quote_char=","), {}),
        (dw.CsvTarget("out", escape_char="ab"), {}),
        (dw.CsvTarget("out", date_format="%Q"), {}),
        (dw.CsvTarget("out", timestamp_format=""), {}),
        (dw.CsvTarget("out", line_terminator="\r"), {}),
        (dw.CsvTarget("out", force_quote="a"), {}),
        (dw.CsvTarget("out", force_quote=["a"], quoting_style="none"), {}),
        (dw.IcebergTarget(5), {}),  # type: ignore[arg-type]  # a wrong type is the point
    ],
)
def test_options_that_a_target_does_not_honour_are_refused(target: Any, options: dict[str, Any]) -> None:
    with pytest.raises(dw.ConfigError):
        dw.open_writer(target, **options)


def test_the_result_tells_and_shows_its_files(tmp_path: Path) -> None:
    result = dw.from_arrow(batch(0)).write_parquet(tmp_path / "out")
    assert "1,000 rows in 1 file" in repr(result)
    assert result.files[0].path in result._repr_html_()
    assert pa.table(result).column_names == ["path", "format", "rows", "bytes", "partition", "row_groups"]
    assert pl.DataFrame(result)["rows"].to_list() == [1000]
    assert set(result.seconds) == {"read", "prepare", "encode", "commit", "total"}
    assert result.peak_accounted_nbytes > 0
