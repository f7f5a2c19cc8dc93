"""`mode="overwrite"` and `mode="overwrite_partitions"`: which rows stay, in which snapshot, whatever the files hold."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import EqualTo
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, IntegerType, LongType, NestedField, StringType

import daftwrite as dw
from tests.conftest import files_below

IDS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(table: Table, **scan: Any) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan(**scan).to_arrow().to_pylist(), key=repr)


def ids(table: Table, **scan: Any) -> list[int]:
    return sorted(table.refresh().scan(**scan).to_arrow()["id"].to_pylist())


def numbered(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "name": [f"n{i}" for i in range(first, last)]}, schema=IDS)


def write(table: Table, data: pa.Table, **options: Any) -> dw.WriteResult:
    return dw.from_arrow(data).write_iceberg(table, **options)


def test_overwriting_all_rows_is_one_snapshot(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    write(table, numbered(10, 20))
    result = write(table, numbered(90, 93), mode="overwrite")
    assert ids(table) == [90, 91, 92]
    assert len(table.snapshots()) == 3
    assert len(result.replaced) == 2
    assert result.kept_files == ()
    summary = table.current_snapshot().summary
    assert summary.operation.value == "overwrite"
    found = summary.additional_properties
    assert (found["added-records"], found["deleted-records"], found["total-records"]) == ("3", "20", "3")
    assert (found["added-data-files"], found["deleted-data-files"], found["total-data-files"]) == ("1", "2", "1")
    assert int(found["total-files-size"]) == sum(file.nbytes for file in result.files)


def test_the_history_of_an_overwrite_can_be_read(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    first = write(table, numbered(0, 10))
    write(table, numbered(90, 93), mode="overwrite")
    assert ids(table, snapshot_id=first.snapshot_id) == list(range(10))


@pytest.mark.parametrize(
    "condition",
    [
        "id >= 5 and id < 8",
        (dw.col("id") >= 5) & (dw.col("id") < 8),
        dw.col("id").is_between(5, 7),
        dw.col("id").is_in([5, 6, 7]),
        ~((dw.col("id") < 5) | (dw.col("id") > 7)),
    ],
)
def test_files_that_hold_other_rows_too_are_rewritten(catalog: SqlCatalog, condition: Any) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    untouched = write(table, numbered(100, 110)).files[0].path
    result = write(table, numbered(200, 201), mode="overwrite", overwrite_filter=condition)
    assert ids(table) == [0, 1, 2, 3, 4, 8, 9, *range(100, 110), 200]
    assert [file.rows for file in result.kept_files] == [7]
    assert untouched in [task.file.file_path for task in table.scan().plan_files()]
    assert result.rows == 1
    assert len(table.snapshots()) == 3


def test_whole_files_are_replaced_without_being_read(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    gone = write(table, numbered(0, 10)).files[0].path
    write(table, numbered(10, 20))
    Path(gone.removeprefix("file://")).unlink()
    result = write(table, numbered(0, 1), mode="overwrite", overwrite_filter="id < 10")
    assert result.replaced == (gone,)
    assert ids(table) == [0, *range(10, 20)]


def test_a_filter_that_matches_nothing_appends(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    result = write(table, numbered(10, 11), mode="overwrite", overwrite_filter="id = 5000")
    assert ids(table) == list(range(11))
    assert result.replaced == ()
    assert table.current_snapshot().summary.operation.value == "append"


@pytest.mark.parametrize("condition", ["x != 1", "x > 1", "x not in (1)"])
def test_a_file_of_nulls_is_no_match_of_a_comparison(catalog: SqlCatalog, condition: str) -> None:
    schema = pa.schema([("x", pa.int32())])
    table = catalog.create_table("ns.t", schema)
    write(table, pa.table({"x": [None, None]}, schema=schema))
    write(table, pa.table({"x": [5]}, schema=schema), mode="overwrite", overwrite_filter=condition)
    assert [r["x"] for r in rows(table)] == [5, None, None]


@pytest.mark.parametrize("source", ["table", "iterator", "nothing"])
def test_an_overwrite_without_rows_is_refused(catalog: SqlCatalog, source: str) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 3))
    empty = numbered(0, 0)
    data: Any = {"table": empty, "iterator": iter([empty]), "nothing": iter([])}[source]
    with pytest.raises(dw.DataError, match="allow_empty"):
        dw.from_arrow(data).write_iceberg(table, mode="overwrite")
    assert ids(table) == [0, 1, 2]


def test_rows_can_be_removed_by_an_empty_overwrite_on_purpose(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    result = write(table, numbered(0, 0), mode="overwrite", overwrite_filter="id < 4", allow_empty=True)
    assert ids(table) == [4, 5, 6, 7, 8, 9]
    assert result.rows == 0
    result = write(table, numbered(0, 0), mode="overwrite", allow_empty=True)
    assert ids(table) == []
    assert table.current_snapshot().summary.operation.value == "delete"
    assert result.snapshot_id == table.current_snapshot().snapshot_id


SPECS = {
    "identity": PartitionField(2, 1000, IdentityTransform(), "name"),
    "bucket": PartitionField(1, 1000, BucketTransform(3), "id_bucket"),
    "truncate": PartitionField(2, 1000, TruncateTransform(1), "name_trunc"),
    "truncate number": PartitionField(1, 1000, TruncateTransform(4), "id_trunc"),
}


@pytest.mark.parametrize("field", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("version", ["1", "2"])
def test_every_transform_is_overwritten_by_filter(catalog: SqlCatalog, field: PartitionField, version: str) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table(
        "ns.t", schema, partition_spec=PartitionSpec(field), properties={"format-version": version}
    )
    data = pa.table({"id": range(12), "name": [None, "a", "ab", "b"] * 3}, schema=IDS)
    write(table, data)
    write(table, numbered(70, 71), mode="overwrite", overwrite_filter="id >= 3 and id < 8")
    assert ids(table) == [0, 1, 2, 8, 9, 10, 11, 70]
    write(table, numbered(71, 72), mode="overwrite", overwrite_filter="name = 'ab'")
    assert ids(table) == [0, 1, 8, 9, 11, 70, 71]
    write(table, numbered(72, 73), mode="overwrite", overwrite_filter="name is null")
    assert ids(table) == [1, 9, 11, 70, 71, 72]


@pytest.mark.parametrize("field", SPECS.values(), ids=SPECS)
@pytest.mark.parametrize("version", ["1", "2"])
def test_partitions_are_overwritten_whatever_their_transform(
    catalog: SqlCatalog, field: PartitionField, version: str
) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table(
        "ns.t", schema, partition_spec=PartitionSpec(field), properties={"format-version": version}
    )
    write(table, pa.table({"id": range(12), "name": [None, "a", "ab", "b"] * 3}, schema=IDS))
    before = {file.file_path: file.partition for file in live_files(table)}
    result = write(table, pa.table({"id": [1, 100], "name": [None, "ab"]}, schema=IDS), mode="overwrite_partitions")
    written = [file.partition_values for file in result.files]
    for path, partition in before.items():
        assert (path in result.replaced) == (tuple(partition[i] for i in range(len(partition))) in written)
    assert len(table.snapshots()) == 2
    assert table.current_snapshot().summary["replace-partitions"] == "true"
    left = [task.file.file_path for task in table.scan().plan_files()]
    assert sorted(left) == sorted({*before} - {*result.replaced} | {file.path for file in result.files})


def live_files(table: Table) -> list[DataFile]:
    return [task.file for task in table.refresh().scan().plan_files()]


def test_float_partitions_are_told_apart_by_their_bits(catalog: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "x", DoubleType()), NestedField(2, "n", IntegerType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "x"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec)
    arrow = pa.schema([("x", pa.float64()), ("n", pa.int32())])
    write(table, pa.table({"x": [0.0, -0.0, float("nan"), None], "n": [1, 2, 3, 4]}, schema=arrow))
    write(table, pa.table({"x": [-0.0, float("nan")], "n": [20, 30]}, schema=arrow), mode="overwrite_partitions")
    assert sorted(r["n"] for r in rows(table)) == [1, 4, 20, 30]


def test_partitions_of_an_earlier_spec_are_overwritten_row_by_row(catalog: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    table = catalog.create_table("ns.t", schema)
    write(table, pa.table({"id": range(6), "name": ["a", "b"] * 3}, schema=IDS))
    write(table, pa.table({"id": range(6, 9), "name": ["c"] * 3}, schema=IDS))
    with table.update_spec() as update:
        update.add_identity("name")
    write(table, pa.table({"id": range(9, 12), "name": ["a", "b", "c"]}, schema=IDS))
    result = write(table, pa.table({"id": [100], "name": ["b"]}, schema=IDS), mode="overwrite_partitions")
    assert ids(table) == [0, 2, 4, 6, 7, 8, 9, 11, 100]
    # Of the first file three rows stay, now under the new spec; the file without a "b" is as it was.
    assert [file.rows for file in result.kept_files] == [3]
    assert len(result.replaced) == 2


def test_partitions_of_old_specs_survive_a_filter(catalog: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    spec = PartitionSpec(PartitionField(1, 1000, BucketTransform(2), "bucket"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec)
    write(table, numbered(0, 10))
    with table.update_spec() as update:
        update.remove_field("bucket")
        update.add_field("name", TruncateTransform(1), "first")
    write(table, numbered(10, 20))
    write(table, numbered(50, 51), mode="overwrite", overwrite_filter="id in (3, 4, 15)")
    assert ids(table) == [0, 1, 2, *range(5, 15), *range(16, 20), 50]
    assert {file.spec_id for file in live_files(table)} <= {0, 1}


def test_an_unpartitioned_table_has_no_partitions_to_overwrite(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    with pytest.raises(dw.ConfigError, match="not partitioned"):
        write(table, numbered(0, 1), mode="overwrite_partitions")


def test_an_empty_overwrite_of_partitions_changes_nothing(catalog: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
    table = catalog.create_table("ns.t", schema, partition_spec=spec)
    write(table, numbered(0, 3))
    assert write(table, numbered(0, 0), mode="overwrite_partitions").snapshot_id is None
    assert ids(table) == [0, 1, 2]


def with_position_deletes(table: Table, path: str, positions: list[int]) -> None:
    """Commit a position delete file, as Spark's merge-on-read does; nothing in Python writes one."""
    location = f"{table.location()}/data/{uuid.uuid4()}-deletes.parquet"
    local = location.removeprefix("file://")
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    pq.write_table(pa.table({"file_path": [path] * len(positions), "pos": positions}, schema=schema), local)
    made = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(positions),
        file_size_in_bytes=Path(local).stat().st_size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    made.spec_id = 0
    commit_deletes(table, made)


def commit_deletes(table: Table, file: DataFile) -> None:
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestWriterV2
    from pyiceberg.table.snapshots import Operation
    from pyiceberg.table.update.snapshot import _FastAppendFiles

    class DeleteManifest(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    class AppendDeletes(_FastAppendFiles):
        def _manifests(self) -> list[Any]:
            writer = DeleteManifest(
                self.spec(0), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
            )
            with writer:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, data_file=file
                    )
                )
            return [writer.to_manifest_file(), *self._existing_manifests()]

    with table.transaction() as transaction:
        AppendDeletes(Operation.OVERWRITE, transaction, table.io).commit()
    table.refresh()


def test_position_deletes_are_applied_to_rows_that_stay(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    path = write(table, numbered(0, 10)).files[0].path
    with_position_deletes(table, path, [1, 8])
    assert ids(table) == [0, 2, 3, 4, 5, 6, 7, 9]
    write(table, numbered(20, 21), mode="overwrite", overwrite_filter="id >= 3 and id < 5")
    assert ids(table) == [0, 2, 5, 6, 7, 9, 20]


def test_replacing_everything_drops_delete_files(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    path = write(table, numbered(0, 10)).files[0].path
    with_position_deletes(table, path, [1, 8])
    write(table, numbered(20, 21), mode="overwrite")
    assert ids(table) == [20]
    manifests = table.current_snapshot().manifests(table.io)
    assert [manifest for manifest in manifests if manifest.content == ManifestContent.DELETES] == []


def test_equality_deletes_are_refused_by_name(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    location = f"{table.location()}/data/eq.parquet"
    pq.write_table(pa.table({"id": [3]}), location.removeprefix("file://"))
    made = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=1,
        equality_ids=[1],
    )
    made.spec_id = 0
    commit_deletes(table, made)
    with pytest.raises(dw.ConfigError, match="equality deletes"):
        write(table, numbered(20, 21), mode="overwrite", overwrite_filter="id = 5")


def test_rows_that_stay_keep_every_value(catalog: SqlCatalog) -> None:
    """pyiceberg's own reader, which its overwrite rewrites through, turns null lists of structs into empty ones."""
    inner = pa.struct([("a", pa.int32()), ("b", pa.string())])
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("structs", pa.list_(pa.field("element", inner))),
            ("map", pa.map_(pa.string(), inner)),
            ("struct", inner),
            ("uuid", pa.uuid()),
            ("fixed", pa.binary(3)),
            ("decimal", pa.decimal128(38, 10)),
            ("time", pa.time64("us")),
            ("zoned", pa.timestamp("us", "UTC")),
            ("text", pa.string()),
        ]
    )
    data = pa.Table.from_pylist(
        [
            {"id": 1, "structs": None, "map": None, "struct": None},
            {"id": 2, "structs": [], "map": [], "struct": {"a": None, "b": None}},
            {
                "id": 3,
                "structs": [{"a": 1, "b": None}, None],
                "map": [("k", {"a": 1, "b": "x"}), ("l", None)],
                "struct": {"a": 1, "b": "c"},
                "uuid": uuid.UUID(int=5).bytes,
                "fixed": b"abc",
                "decimal": Decimal("-1234567890.0123456789"),
                "time": dt.time(23, 59, 59, 999999),
                "zoned": dt.datetime(1901, 1, 1, tzinfo=dt.UTC),
                "text": "z" * 5000,
            },
            {"id": 4},
        ],
        schema=schema,
    )
    table = catalog.create_table("ns.t", schema)
    write(table, data)
    result = write(table, data.slice(0, 0), mode="overwrite", overwrite_filter="id = 4", allow_empty=True)
    (kept,) = result.kept_files
    read = pq.read_table(kept.path.removeprefix("file://"))
    assert read.to_pylist() == data.slice(0, 3).to_pylist()


def test_rows_that_stay_are_read_as_the_current_schema_sees_them(catalog: SqlCatalog) -> None:
    schema = Schema(
        NestedField(1, "id", IntegerType()), NestedField(2, "old", StringType()), NestedField(3, "gone", StringType())
    )
    table = catalog.create_table("ns.t", schema)
    arrow = pa.schema([("id", pa.int32()), ("old", pa.string()), ("gone", pa.string())])
    write(table, pa.table({"id": [1, 2, 3], "old": ["a", "b", "c"], "gone": ["x"] * 3}, schema=arrow))
    with table.update_schema() as update:
        update.rename_column("old", "new")
        update.delete_column("gone")
    with table.update_schema() as update:
        update.add_column("old", IntegerType())
        update.update_column("id", LongType())
    now = pa.schema([("id", pa.int64()), ("new", pa.string()), ("old", pa.int32())])
    write(
        table,
        pa.table({"id": [2**40], "new": ["d"], "old": [7]}, schema=now),
        mode="overwrite",
        overwrite_filter="id = 2",
    )
    assert rows(table) == [
        {"id": 1, "new": "a", "old": None},
        {"id": 1099511627776, "new": "d", "old": 7},
        {"id": 3, "new": "c", "old": None},
    ]
    write(
        table, pa.table({"id": [9], "new": ["e"], "old": [8]}, schema=now), mode="overwrite", overwrite_filter="id > 5"
    )
    assert [r["id"] for r in rows(table)] == [1, 3, 9]


def test_files_without_field_ids_are_read_through_the_name_mapping(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("ns.t", IDS)
    path = tmp_path / "added.parquet"
    pq.write_table(numbered(0, 5), path)
    table.add_files([f"file://{path}"])
    write(table, numbered(9, 10), mode="overwrite", overwrite_filter="id = 2")
    assert ids(table) == [0, 1, 3, 4, 9]


def test_statistics_without_counts_prove_nothing(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS, properties={"write.metadata.metrics.default": "none"})
    write(table, numbered(0, 10))
    write(table, numbered(50, 51), mode="overwrite", overwrite_filter="id < 5")
    assert ids(table) == [5, 6, 7, 8, 9, 50]
    write(table, numbered(51, 52), mode="overwrite", overwrite_filter=EqualTo("name", "n50"))
    assert ids(table) == [5, 6, 7, 8, 9, 51]


def test_day_partitions_before_1970_are_cut_right(catalog: SqlCatalog) -> None:
    arrow = pa.schema([("ts", pa.timestamp("us")), ("n", pa.int32())])
    table = catalog.create_table("ns.t", arrow)
    with table.update_spec() as update:
        update.add_field("ts", DayTransform(), "day")
    moments = [dt.datetime(1969, 12, 30, 23, 59, 59, 999999), dt.datetime(1969, 12, 31), dt.datetime(1970, 1, 1)]
    write(table, pa.table({"ts": moments, "n": [1, 2, 3]}, schema=arrow))
    write(
        table,
        pa.table({"ts": [], "n": []}, schema=arrow),
        mode="overwrite",
        overwrite_filter=dw.col("ts") < dt.datetime(1969, 12, 31),
        allow_empty=True,
    )
    assert sorted(r["n"] for r in rows(table)) == [2, 3]


def test_a_source_that_raises_leaves_an_overwrite_undone(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    before = files_below(tmp_path)

    def broken() -> Any:
        yield numbered(20, 30)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        dw.from_arrow(broken()).write_iceberg(table, mode="overwrite", overwrite_filter="id < 5")
    assert files_below(tmp_path) == before
    assert ids(table) == list(range(10))


def test_a_file_that_cannot_be_read_leaves_an_overwrite_undone(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = catalog.create_table("ns.t", IDS)
    path = write(table, numbered(0, 10)).files[0].path.removeprefix("file://")
    Path(path).write_bytes(b"PAR1 no more")
    before = files_below(tmp_path)
    with pytest.raises(dw.WriteError, match="ns.t"):
        write(table, numbered(20, 21), mode="overwrite", overwrite_filter="id < 5")
    assert files_below(tmp_path) == before
