"""Each table property's effect, read from the files and metadata that a write leaves."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, ServiceUnavailableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.locations import LocationProvider
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import daftwrite as dw
from tests.conftest import files_below
from tests.formats.pages import pages
from tests.interop.matrix import TYPES, rows_of

DATA = pa.table(
    {
        "a": pa.array(range(100_000)),
        "s": [f"text {i * 7919 % 99_991}" for i in range(100_000)],
        "few": ["x", "y"] * 50_000,
    }
)
PARTITIONED = (
    Schema(NestedField(1, "k", StringType()), NestedField(2, "v", LongType())),
    PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "k")),
)


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


def written(catalog: SqlCatalog, properties: dict[str, str], data: pa.Table = DATA, **options: Any) -> Path:
    table = catalog.create_table("ns.t", data.schema, properties=properties)
    result = dw.from_arrow(data).write_iceberg(table, **options)
    return local(result.files[0].path)


def column(path: Path, name: str) -> Any:
    group = pq.read_metadata(path).row_group(0)
    return next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == name)


@pytest.mark.parametrize(
    ("codec", "stored"),
    [
        ("zstd", "ZSTD"),
        ("snappy", "SNAPPY"),
        ("gzip", "GZIP"),
        ("brotli", "BROTLI"),
        ("lz4", "LZ4"),
        ("lz4_raw", "LZ4"),
        ("uncompressed", "UNCOMPRESSED"),
        ("none", "UNCOMPRESSED"),
    ],
)
def test_codec(catalog: SqlCatalog, codec: str, stored: str) -> None:
    assert column(written(catalog, {"write.parquet.compression-codec": codec}), "a").compression == stored


def test_codec_by_default(catalog: SqlCatalog) -> None:
    assert column(written(catalog, {}), "a").compression == "ZSTD"


def test_codec_level(catalog: SqlCatalog) -> None:
    sizes = {}
    text = random.Random(7)
    words = [" ".join(text.choices(["lorem", "ipsum", "dolor", "sit", "amet"], k=9)) for _ in range(20_000)]
    data = pa.table({"s": words})
    for level in ("1", "19"):
        table = catalog.create_table(f"ns.l{level}", data.schema, properties={"write.parquet.compression-level": level})
        sizes[level] = dw.from_arrow(data).write_iceberg(table).nbytes
    assert sizes["19"] < 0.95 * sizes["1"]


def test_row_group_rows(catalog: SqlCatalog) -> None:
    metadata = pq.read_metadata(written(catalog, {"write.parquet.row-group-limit": "30000"}))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [30_000, 30_000, 30_000, 10_000]


def test_row_group_bytes(catalog: SqlCatalog) -> None:
    metadata = pq.read_metadata(written(catalog, {"write.parquet.row-group-size-bytes": "200000"}))
    assert metadata.num_row_groups > 2
    sizes = []
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        sizes.append(sum(group.column(c).total_compressed_size for c in range(group.num_columns)))
    assert all(size <= 200_000 * 1.1 for size in sizes)


def test_page_bytes(catalog: SqlCatalog) -> None:
    properties = {
        "write.parquet.page-size-bytes": "16384",
        "write.parquet.dict-encoding-enabled.column.s": "false",
    }
    found = pages(written(catalog, properties), "s")
    assert all(page.nbytes <= 2 * 16384 for page in found)
    assert sum(page.nbytes for page in found) / len(found) > 8192


def test_page_rows(catalog: SqlCatalog) -> None:
    found = pages(written(catalog, {"write.parquet.page-row-limit": "1500"}), "few")
    assert max(page.values for page in found if page.kind != "dictionary") == 1500


def test_page_rows_by_default(catalog: SqlCatalog) -> None:
    found = pages(written(catalog, {}), "few")
    assert [page.values for page in found if page.kind != "dictionary"] == [20_000] * 5


@pytest.mark.parametrize(("version", "kind"), [("v1", "data v1"), ("v2", "data v2")])
def test_page_version(catalog: SqlCatalog, version: str, kind: str) -> None:
    path = written(catalog, {"write.parquet.page-version": version})
    assert {page.kind for page in pages(path, "a")} - {"dictionary"} == {kind}
    assert duckdb.sql(f"select count(*), sum(a) from '{path}'").fetchall() == [(100_000, 4_999_950_000)]


def test_dictionary_bytes(catalog: SqlCatalog) -> None:
    properties = {"write.parquet.dict-size-bytes": "4096", "write.parquet.dict-encoding-enabled.column.s": "true"}
    found = pages(written(catalog, properties), "s")
    assert found[0].kind == "dictionary"
    assert found[0].nbytes < 4096 + 16384  # checked once per batch of values
    assert column(
        written_again(catalog, {"write.parquet.dict-encoding-enabled.column.s": "true"}), "s"
    ).has_dictionary_page


def written_again(catalog: SqlCatalog, properties: dict[str, str]) -> Path:
    table = catalog.create_table("ns.again", DATA.schema, properties=properties)
    return local(dw.from_arrow(DATA).write_iceberg(table).files[0].path)


@pytest.mark.parametrize(("name", "by_default"), [("few", True), ("a", False)])
def test_dictionaries_per_column(catalog: SqlCatalog, name: str, by_default: bool) -> None:
    assert column(written(catalog, {}), name).has_dictionary_page == by_default
    key = f"write.parquet.dict-encoding-enabled.column.{name}"
    changed = written_again(catalog, {key: "false" if by_default else "true"})
    assert column(changed, name).has_dictionary_page != by_default


def test_statistics_per_column(catalog: SqlCatalog) -> None:
    path = written(catalog, {"write.parquet.stats-enabled.column.s": "false"})
    assert not column(path, "s").is_stats_set
    assert column(path, "a").statistics.max == 99_999
    (task,) = catalog.load_table("ns.t").scan().plan_files()
    assert 2 not in task.file.lower_bounds
    assert 1 in task.file.lower_bounds


def test_bloom_filters(catalog: SqlCatalog) -> None:
    properties = {
        "write.parquet.bloom-filter-enabled.column.s": "true",
        "write.parquet.bloom-filter-enabled.column.few": "false",
        "write.parquet.bloom-filter-fpp.column.s": "0.001",
        "write.parquet.row-group-limit": "50000",
    }
    path = written(catalog, properties)
    query = (
        f"select path_in_schema, bloom_filter_length from parquet_metadata('{path}') order by row_group_id, column_id"
    )
    lengths = duckdb.sql(query).fetchall()
    assert [name for name, length in lengths if length] == ["s", "s"]
    assert probe(path, "text 17") != []
    # Every value is found where it is; of ten thousand that aren't, about one in a thousand passes.
    groups = pq.ParquetFile(path)
    some = groups.read_row_group(1)["s"].to_pylist()[:50]
    assert all(1 in probe(path, value) for value in some)
    absent = duckdb.connect()
    absent.execute("set enable_progress_bar = false")
    passed = sum(len(probe(path, f"none {i}")) for i in range(500))
    assert passed <= 20


def probe(path: Path, value: str) -> list[int]:
    query = f"select row_group_id, bloom_filter_excludes from parquet_bloom_probe('{path}', 's', '{value}')"
    return [group for group, excludes in duckdb.sql(query).fetchall() if not excludes]


def bloom_length(path: Path) -> int:
    query = f"select max(bloom_filter_length) from parquet_metadata('{path}') where path_in_schema = 's'"
    ((length,),) = duckdb.sql(query).fetchall()
    return int(length)


def test_bloom_filter_sizes(catalog: SqlCatalog) -> None:
    on = {"write.parquet.bloom-filter-enabled.column.s": "true"}
    # Split-block filters take about ten bits a value at 1 %, rounded up to a power of two.
    assert 1 << 17 <= bloom_length(written(catalog, on)) <= (1 << 18) + 64
    few = {**on, "write.parquet.bloom-filter-ndv.column.s": "1000"}
    assert bloom_length(written_again(catalog, few)) <= (1 << 11) + 64
    catalog.drop_table("ns.again")
    capped = {**on, "write.parquet.bloom-filter-max-bytes": "4096"}
    assert bloom_length(written_again(catalog, capped)) <= 4096 + 64


def test_bloom_filters_of_nested_columns_are_named_as_in_the_table(catalog: SqlCatalog) -> None:
    data = pa.table({"l": [[{"x": "a"}], [{"x": "b"}]]})
    properties = {"write.parquet.bloom-filter-enabled.column.l.element.x": "true"}
    path = written(catalog, properties, data)
    query = f"select path_in_schema from parquet_metadata('{path}') where bloom_filter_length > 0"
    assert duckdb.sql(query).fetchall() == [("l, list, element, x",)]


def test_arguments_beat_properties(catalog: SqlCatalog) -> None:
    properties = {
        "write.parquet.compression-codec": "snappy",
        "write.parquet.compression-level": "7",
        "write.parquet.row-group-limit": "10000",
        "write.target-file-size-bytes": "10000",
    }
    path = written(catalog, properties, compression="gzip", row_group_rows=40_000, target_file_size="1 GiB")
    assert column(path, "a").compression == "GZIP"
    assert pq.read_metadata(path).row_group(0).num_rows == 40_000
    assert pq.read_metadata(path).num_rows == 100_000


def test_data_path(catalog: SqlCatalog, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    path = written(catalog, {"write.data.path": f"file://{elsewhere}"})
    assert path.parent == elsewhere
    assert catalog.load_table("ns.t").scan().to_arrow().num_rows == 100_000


def test_metadata_path(catalog: SqlCatalog, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    written(catalog, {"write.metadata.path": f"file://{elsewhere}"})
    kinds = {re.sub(r"[0-9a-f-]{20,}|\d+", "", path) for path in files_below(elsewhere)}
    assert len([path for path in files_below(elsewhere) if path.endswith(".avro")]) == 2
    assert any(kind.endswith(".metadata.json") for kind in kinds)


@pytest.mark.parametrize("in_path", ["true", "false"])
def test_object_store_layout(catalog: SqlCatalog, in_path: str) -> None:
    schema, spec = PARTITIONED
    properties = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": in_path}
    table = catalog.create_table("ns.t", schema, partition_spec=spec, properties=properties)
    result = dw.from_arrow(pa.table({"k": ["a", "b"], "v": [1, 2]})).write_iceberg(table)
    root = table.location() + "/data/"
    inside = [file.path.removeprefix(root) for file in result.files]
    pattern = (
        r"[01]{4}/[01]{4}/[01]{4}/[01]{8}/k=[ab]/[^/]+"
        if in_path == "true"
        else r"[01]{4}/[01]{4}/[01]{4}/[01]{8}-[^/]+"
    )
    assert all(re.fullmatch(pattern, path) for path in inside), inside
    assert table.refresh().scan(row_filter="k = 'b'").to_arrow()["v"].to_pylist() == [2]


class ByName(LocationProvider):
    """Puts everything below a folder of its own."""

    def new_data_location(self, data_file_name: str, partition_key: Any = None) -> str:
        return f"{self.table_location}/mine/{data_file_name}"


def test_python_location_provider(catalog: SqlCatalog) -> None:
    path = written(catalog, {"write.py-location-provider.impl": f"{__name__}.ByName"})
    assert path.parent.name == "mine"


def test_a_missing_location_provider_is_one_clear_error(catalog: SqlCatalog, tmp_path: Path) -> None:
    properties = {"write.py-location-provider.impl": "nowhere.At"}
    with pytest.raises(dw.DaftwriteError, match="nowhere.At"):
        dw.from_arrow(DATA).write_iceberg("ns.t", catalog=catalog, create=True, properties=properties)
    assert [path for path in files_below(tmp_path) if "catalog.db" not in path] == []


def manifests(table: Table) -> list[Any]:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return list(snapshot.manifests(table.io))


def add_rows(table: Table, times: int) -> None:
    for i in range(times):
        dw.from_arrow(pa.table({"a": [i]})).write_iceberg(table)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"commit.manifest-merge.enabled": "false"}, 6),
        ({}, 6),
        ({"commit.manifest.min-count-to-merge": "3"}, 2),
        ({"commit.manifest.min-count-to-merge": "3", "commit.manifest-merge.enabled": "false"}, 6),
        # No two manifests fit into one of so few bytes.
        ({"commit.manifest.min-count-to-merge": "2", "commit.manifest.target-size-bytes": "100"}, 6),
    ],
)
def test_manifest_merging(catalog: SqlCatalog, properties: dict[str, str], expected: int) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties=properties)
    add_rows(table, 6)
    assert len(manifests(table)) == expected
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == list(range(6))
    assert table.current_snapshot().summary["total-data-files"] == "6"
    added = {task.file.file_path for task in table.scan().plan_files()}
    assert len(added) == 6
    entries = [entry for m in manifests(table) for entry in m.fetch_manifest_entry(table.io)]
    assert len({entry.snapshot_id for entry in entries}) == 6
    assert sorted(entry.sequence_number for entry in entries) == [1, 2, 3, 4, 5, 6]


def test_a_hundred_manifests_are_merged_by_default(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    add_rows(table, 101)
    assert len(manifests(table)) == 2
    assert sorted(table.scan().to_arrow()["a"].to_pylist()) == list(range(101))


def test_new_manifests_end_at_the_target_size(catalog: SqlCatalog) -> None:
    schema, spec = PARTITIONED
    properties = {"commit.manifest.target-size-bytes": "16384", "write.manifest.compression-codec": "none"}
    table = catalog.create_table("ns.t", schema, partition_spec=spec, properties=properties)
    data = pa.table({"k": [f"partition {i:04d}" for i in range(300)], "v": range(300)})
    dw.from_arrow(data).write_iceberg(table)
    sizes = [manifest.manifest_length for manifest in manifests(table)]
    assert len(sizes) > 3
    assert all(size < 1.25 * 16384 for size in sizes)
    assert all(size > 0.75 * 16384 for size in sorted(sizes)[1:])


@pytest.mark.parametrize(
    ("properties", "codec"),
    [
        ({}, "deflate"),
        ({"write.manifest.compression-codec": "zstd"}, "zstandard"),
        ({"write.avro.compression-codec": "bzip2"}, "bzip2"),
        ({"write.avro.compression-codec": "bzip2", "write.manifest.compression-codec": "uncompressed"}, "null"),
    ],
)
def test_manifest_codec(catalog: SqlCatalog, properties: dict[str, str], codec: str) -> None:
    written(catalog, properties)
    table = catalog.load_table("ns.t")
    snapshot = table.current_snapshot()
    for path in (snapshot.manifest_list, manifests(table)[0].manifest_path):
        with open(local(path), "rb") as file:
            assert fastavro.reader(file).metadata["avro.codec"] == codec


def test_partition_summaries(catalog: SqlCatalog) -> None:
    schema, spec = PARTITIONED
    data = pa.table({"k": ["a", "a", "b/c"], "v": [1, 2, 3]})
    for limit, expected in (("2", ["partitions.k=a", "partitions.k=b%2Fc"]), ("1", []), ("0", [])):
        table = catalog.create_table(
            f"ns.t{limit}", schema, partition_spec=spec, properties={"write.summary.partition-limit": limit}
        )
        dw.from_arrow(data).write_iceberg(table)
        summary = table.refresh().current_snapshot().summary
        assert sorted(key for key in summary.additional_properties if key.startswith("partitions.")) == expected
        assert summary["changed-partition-count"] == "2"
    first = catalog.load_table("ns.t2").current_snapshot().summary["partitions.k=a"]
    assert "added-records=2" in first


@pytest.mark.parametrize("kind", TYPES)
def test_partitions_are_named_the_same_when_they_leave(catalog: SqlCatalog, kind: str) -> None:
    properties = {"write.summary.partition-limit": "100"}
    frame = dw.from_arrow(rows_of(kind, 0, len(TYPES[kind][1])))
    frame.write_iceberg("ns.t", catalog=catalog, create=True, partition_by="p", properties=properties)
    table = catalog.load_table("ns.t")
    appended = partition_names(table)
    nothing = dw.from_arrow(rows_of(kind, 0, 0))
    nothing.write_iceberg(table, mode="overwrite", allow_empty=True)
    assert partition_names(table.refresh()) == appended


def partition_names(table: Table) -> set[str]:
    summary = table.current_snapshot().summary.additional_properties
    return {key for key in summary if key.startswith("partitions.")}


def test_old_metadata_is_deleted_after_the_commit(catalog: SqlCatalog) -> None:
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "2"}
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties=properties)
    add_rows(table, 6)
    kept = [path for path in files_below(local(table.location())) if path.endswith(".metadata.json")]
    assert len(kept) == 3
    assert len(table.refresh().metadata.metadata_log) == 2


def test_old_metadata_stays_by_default(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    add_rows(table, 4)
    assert len([p for p in files_below(local(table.location())) if p.endswith(".metadata.json")]) == 5


class Pauses:
    """Notes how long a commit waits instead of waiting."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds: list[float] = []
        self.now = 0.0
        monkeypatch.setattr(time, "sleep", self.sleep)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        self.now += seconds


def refused(*arguments: Any, **options: Any) -> None:
    raise CommitFailedException("someone else was first")


def doubtful(*arguments: Any, **options: Any) -> None:
    raise ServiceUnavailableError("no answer")


@pytest.mark.parametrize(
    ("properties", "pauses"),
    [
        ({"commit.retry.num-retries": "0"}, []),
        ({"commit.retry.num-retries": "3", "commit.retry.min-wait-ms": "1000"}, [1, 2, 4]),
        (
            {
                "commit.retry.num-retries": "4",
                "commit.retry.min-wait-ms": "1000",
                "commit.retry.max-wait-ms": "2000",
            },
            [1, 2, 2, 2],
        ),
        (
            {
                "commit.retry.num-retries": "9",
                "commit.retry.min-wait-ms": "10000",
                "commit.retry.max-wait-ms": "10000",
                "commit.retry.total-timeout-ms": "1000",
            },
            [10],
        ),
    ],
)
def test_retries(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], pauses: list[float]
) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties=properties)
    clock = Pauses(monkeypatch)
    monkeypatch.setattr(catalog, "commit_table", refused)
    with pytest.raises(dw.CommitConflict, match="someone else was first"):
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    waits = [seconds for seconds in clock.seconds if seconds >= 0.5]
    assert len(waits) == len(pauses)
    assert all(0.5 * wanted <= found <= 1.5 * wanted for found, wanted in zip(waits, pauses, strict=True))


@pytest.mark.parametrize(
    ("properties", "pauses"),
    [
        ({}, [1, 2, 4]),
        ({"commit.status-check.num-retries": "2", "commit.status-check.min-wait-ms": "5000"}, [5, 10]),
        (
            {
                "commit.status-check.num-retries": "4",
                "commit.status-check.min-wait-ms": "1000",
                "commit.status-check.max-wait-ms": "2000",
            },
            [1, 2, 2, 2],
        ),
        ({"commit.status-check.num-retries": "9", "commit.status-check.total-timeout-ms": "2500"}, [1, 2]),
    ],
)
def test_status_checks(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, properties: dict[str, str], pauses: list[float]
) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties=properties)
    clock = Pauses(monkeypatch)
    monkeypatch.setattr(catalog, "commit_table", doubtful)
    with pytest.raises(dw.CommitStateUnknown):
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    assert [seconds for seconds in clock.seconds if seconds >= 0.5] == pauses


@pytest.mark.parametrize(
    ("level", "allow_empty", "key"),
    [
        ("serializable", False, "write.update.isolation-level"),
        ("snapshot", False, "write.update.isolation-level"),
        ("snapshot", True, "write.delete.isolation-level"),
    ],
)
def test_isolation_level(catalog: SqlCatalog, level: str, allow_empty: bool, key: str) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties={key: level})
    add_rows(table, 1)
    target = dw.IcebergTarget(table, mode="overwrite", overwrite_filter="a < 100", allow_empty=allow_empty)

    def overwrite() -> None:
        with dw.open_writer(target) as writer:
            writer.write(pa.table({"a": [50]}).slice(0, 0 if allow_empty else 1))
            dw.from_arrow(pa.table({"a": [7]})).write_iceberg(catalog.load_table("ns.t"))

    if level == "serializable":
        with pytest.raises(dw.CommitConflict, match="with rows that the overwrite replaces"):
            overwrite()
        assert sorted(table.refresh().scan().to_arrow()["a"].to_pylist()) == [0, 7]
        return
    overwrite()
    assert sorted(table.refresh().scan().to_arrow()["a"].to_pylist()) == ([7] if allow_empty else [7, 50])


def test_ids_in_names_tell_which_write_made_a_file(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    result = dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    assert UUID(result.write_id)
    assert result.write_id in result.files[0].path
