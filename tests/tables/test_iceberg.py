from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg import types as it
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import EqualTo, GreaterThan, IsNaN, IsNull
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)

import daftwrite as dw
from daftwrite.tables.iceberg.commit import WRITE_ID_PROPERTY
from tests.conftest import files_below


def rows_of(table: Table) -> list[dict[str, Any]]:
    return table.refresh().scan().to_arrow().to_pylist()


EVERYTHING = pa.table(
    {
        "b": [True, None, False],
        "i8": pa.array([-128, None, 127], pa.int8()),
        "u32": pa.array([2**32 - 1, None, 0], pa.uint32()),
        "u64": pa.array([2**64 - 1, None, 0], pa.uint64()),
        "f16": pa.array([1.5, None, -0.0], pa.float16()),
        "f64": [math.inf, None, -1e300],
        "d32": pa.array([Decimal("-1.25"), None, Decimal("9.99")], pa.decimal32(5, 2)),
        "d256": pa.array([Decimal(10) ** 30, None, -1], pa.decimal256(38, 0)),
        "date": [dt.date(1969, 12, 31), None, dt.date(9999, 12, 31)],
        "date64": pa.array([dt.date(1969, 12, 31), None, dt.date(2020, 2, 29)], pa.date64()),
        "time": pa.array([dt.time(23, 59, 59), None, dt.time(0)], pa.time32("s")),
        "ts": pa.array([dt.datetime(1969, 12, 31, 23, 59, 59), None, dt.datetime(2020, 1, 1)], pa.timestamp("s")),
        "tz": pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, None], pa.timestamp("ms", "Asia/Tokyo")),
        "s": pa.array(["é😎", None, ""], pa.string_view()),
        "dict": pa.array(["x", None, "x"]).dictionary_encode(),
        "bin": pa.array([b"\x00", None, b""], pa.large_binary()),
        "fix": pa.array([b"abcd", None, b"efgh"], pa.binary(4)),
        "uuid": pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2**127).bytes], pa.uuid()),
        "json": pa.array(["{}", None, "[1]"], pa.json_()),
        "list": pa.array([[1, None], None, []], pa.large_list(pa.int16())),
        "lstruct": pa.array([[{"x": 1}], None, [None]], pa.list_(pa.struct({"x": pa.int8()}))),
        "struct": pa.array([{"a b": 1, "c": {"d": "x"}}, None, {"a b": None, "c": None}], pa.struct({"a b": pa.int64(), "c": pa.struct({"d": pa.string()})})),
        "map": pa.array([[("k", 1.5)], None, []], pa.map_(pa.string(), pa.float32())),
        "odd name.1": [1, None, 3],
        "1😎": ["a", None, "c"],
    }
)  # fmt: skip


def test_every_arrow_type_reads_back(catalog: SqlCatalog) -> None:
    result = dw.from_arrow(EVERYTHING).write_iceberg("ns.t", catalog=catalog, create=True)
    table = catalog.load_table("ns.t")
    expected = EVERYTHING.to_pylist()
    for row in expected:
        row["u64"] = None if row["u64"] is None else Decimal(row["u64"])
        row["tz"] = None if row["tz"] is None else row["tz"].astimezone(ZoneInfo("UTC"))
    found = rows_of(table)
    # pyiceberg 0.12 reads a null list of structs as an empty list; pyarrow and DuckDB tell what is in the file.
    (path,) = [file.path.removeprefix("file://") for file in result.files]
    in_file = pq.ParquetFile(path).read(["lstruct"])["lstruct"].to_pylist()
    assert in_file == EVERYTHING["lstruct"].to_pylist()
    assert duckdb.sql(f"select lstruct is null from read_parquet('{path}')").fetchall() == [
        (False,),
        (True,),
        (False,),
    ]
    for name in EVERYTHING.drop_columns(["lstruct"]).schema.names:
        assert str([row[name] for row in found]) == str([row[name] for row in expected]), name
    assert pl.scan_iceberg(table).select("i8", "u32", "list", "struct", "tz").collect().height == 3
    query = "select i8, u32, u64, d32, d256, date, ts, s, bin, lstruct, map is null from read_parquet(?) offset 1"
    fetched = duckdb.execute(query.replace("?", f"'{path}'")).fetchall()
    assert fetched[0] == (None,) * 10 + (True,)
    assert fetched[1][:4] == (127, 0, Decimal(0), Decimal("9.99"))
    stored = pq.ParquetFile(path).schema
    assert stored.column(1).physical_type == "INT32"
    assert stored.column(2).physical_type == "INT64"
    assert stored.column(2).logical_type.type == "NONE"
    ids = {f.name: f.metadata[b"PARQUET:field_id"] for f in pq.read_schema(path)}
    assert ids["odd_x20name_x2E1"] == str(table.schema().find_field("odd name.1").field_id).encode()


@pytest.mark.parametrize("version", ["1", "2"])
def test_appends_to_both_format_versions(catalog: SqlCatalog, version: str) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties={"format-version": version})
    for i in range(3):
        result = dw.from_arrow(pa.table({"a": [i]})).write_iceberg(table)
        assert table.refresh().current_snapshot().snapshot_id == result.snapshot_id
    assert sorted(row["a"] for row in rows_of(table)) == [0, 1, 2]
    summary = table.current_snapshot().summary
    assert summary["added-records"] == "1"
    assert summary["total-records"] == "3"
    assert summary["total-data-files"] == "3"
    assert summary[WRITE_ID_PROPERTY] == result.write_id
    assert [s.parent_snapshot_id for s in table.snapshots()][1:] == [s.snapshot_id for s in table.snapshots()][:-1]


def test_version_3_is_refused_by_name(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]))
    table.metadata = TableMetadataV3.model_construct(**{**dict(table.metadata), "format_version": 3, "next_row_id": 0})
    with pytest.raises(dw.ConfigError, match="ns.t has format version 3"):
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)


MICROS = [-1, 0, 1, -86_400_000_000, -865209600202811, 1_357_000_000_000_000, None, -1]
TIMES = pa.array(MICROS, pa.int64()).cast(pa.timestamp("us"))
SPECS: list[tuple[str, Any]] = [
    ("ts", YearTransform()),
    ("ts", MonthTransform()),
    ("ts", DayTransform()),
    ("ts", HourTransform()),
    ("ts", IdentityTransform()),
    ("ts", BucketTransform(3)),
    ("date", YearTransform()),
    ("date", DayTransform()),
    ("date", IdentityTransform()),
    ("n", TruncateTransform(10)),
    ("n", BucketTransform(4)),
    ("n", VoidTransform()),
    ("s", TruncateTransform(1)),
    ("s", IdentityTransform()),
    ("d", TruncateTransform(100)),
    ("d", IdentityTransform()),
    ("u", IdentityTransform()),
    ("u", BucketTransform(2)),
    ("bin", IdentityTransform()),
    ("bin", TruncateTransform(1)),
    ("time", BucketTransform(5)),
    ("b", IdentityTransform()),
    ("f", IdentityTransform()),
    ("st.x", IdentityTransform()),
    ("st.x", BucketTransform(2)),
]
ROWS = pa.table(
    {
        "ts": TIMES,
        "date": TIMES.cast(pa.date32(), safe=False),
        "n": pa.array([-1, 0, 1, -11, 9, 10, None, -1], pa.int64()),
        "s": ["", "a/b", "a%b", "é", "null", "__x", None, ""],
        "d": pa.array([Decimal("-0.01"), 0, 1, Decimal("10.65"), 3, 4, None, Decimal("-0.01")], pa.decimal128(9, 2)),
        "u": pa.array([uuid.UUID(int=i).bytes for i in (1, 2, 3, 4, 5, 6)] + [None, uuid.UUID(int=1).bytes], pa.uuid()),
        "bin": pa.array([b"", b"\xff", b"a", b"ab", b"b", b"c", None, b""]),
        "time": pa.array([1, 2, 3, 4, 5, 6, None, 1], pa.int64()).cast(pa.time64("us")),
        "b": [True, False, None, True, False, True, None, True],
        "f": [0.0, -0.0, math.nan, 1.5, -1.5, math.inf, None, 0.0],
        "st": pa.array([{"x": 1}, {"x": 2}, None, {"x": None}, {"x": 1}, {"x": 3}, None, {"x": 1}], pa.struct({"x": pa.int64()})),
    }
)  # fmt: skip


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(("column", "transform"), SPECS, ids=str)
def test_every_transform(catalog: SqlCatalog, column: str, transform: Any, version: str) -> None:
    base = catalog.create_table("ns.base", ROWS.schema)
    source = base.schema().find_field(column)
    table = catalog.create_table(
        "ns.t",
        base.schema(),
        partition_spec=PartitionSpec(PartitionField(source.field_id, 1000, transform, "p")),
        properties={"format-version": version},
    )
    dw.from_arrow(ROWS).write_iceberg(table)
    found = rows_of(table)
    assert sorted(map(str, found)) == sorted(map(str, ROWS.to_pylist()))
    # pyiceberg's own transform of every row must give the partition that the row's file has.
    apply = transform.transform(source.field_type)
    for task in table.scan().plan_files():
        rows = pq.ParquetFile(task.file.file_path.removeprefix("file://")).read().to_pylist()
        for row in rows:
            value: Any = row
            for name in column.split("."):
                value = None if value is None else value[name]
            expected = apply(internal(value, source.field_type))
            got = task.file.partition[0]
            if isinstance(got, uuid.UUID):
                got = got.bytes
            assert str(got) == str(expected), (row, got)
    name = column.split(".")[0]
    if column == name and name not in ("f", "u"):
        for value in ROWS[name].to_pylist():
            condition = IsNull(name) if value is None else EqualTo(name, value)
            count = sum(str(row[name]) == str(value) for row in found)
            assert table.scan(row_filter=condition).to_arrow().num_rows == count, value


def internal(value: Any, kind: it.IcebergType) -> Any:
    if value is None:
        return None
    if isinstance(kind, it.TimestampType):
        return (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    if isinstance(kind, it.DateType):
        return (value - dt.date(1970, 1, 1)).days
    if isinstance(kind, it.TimeType):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond
    if isinstance(kind, it.UUIDType):
        return value.bytes
    return value


def test_two_fields_on_one_source(catalog: SqlCatalog) -> None:
    by = [dw.identity("n"), dw.bucket(2, "n")]
    dw.from_arrow(ROWS.select(["n", "s"])).write_iceberg("ns.t", catalog=catalog, create=True, partition_by=by)
    table = catalog.load_table("ns.t")
    assert len(rows_of(table)) == 8
    assert [f.name for f in table.spec().fields] == ["n", "n_bucket"]


def test_nan_and_signed_zero_are_partitions_of_their_own(catalog: SqlCatalog) -> None:
    dw.from_arrow(ROWS.select(["f"])).write_iceberg("ns.t", catalog=catalog, create=True, partition_by="f")
    table = catalog.load_table("ns.t")
    assert len(table.inspect.files()) == 7
    assert table.scan(row_filter=IsNaN("f")).to_arrow().num_rows == 1
    assert table.scan().to_arrow().num_rows == 8


def statistics(table: Table) -> dict[str, dict[str, Any]]:
    (task,) = table.refresh().scan().plan_files()
    file = task.file
    found: dict[str, dict[str, Any]] = {}
    for number, count in file.value_counts.items():
        field = table.schema().find_field(number)
        name = table.schema().find_column_name(number)
        assert name is not None
        found[name] = {
            "values": count,
            "nulls": file.null_value_counts.get(number),
            "nans": file.nan_value_counts.get(number),
            "lower": from_bytes(field.field_type, file.lower_bounds[number]) if number in file.lower_bounds else None,
            "upper": from_bytes(field.field_type, file.upper_bounds[number]) if number in file.upper_bounds else None,
        }
    return found


def test_statistics_follow_the_specification(catalog: SqlCatalog) -> None:
    data = pa.table(
        {
            "s": ["a" * 30, "z" * 30, None],
            "top": ["\U0010ffff" * 20, "b", None],
            "bin": [b"\xff" * 20, b"\x01" * 20, None],
            "f": [math.nan, -1.0, 2.0],
            "allnan": [math.nan] * 3,
            "st": pa.array([{"x": 5}, None, {"x": 7}], pa.struct({"x": pa.int64()})),
            "l": [[3.0, math.nan], None, []],
            "d": pa.array([Decimal("-1.28"), Decimal("1.27"), None], pa.decimal128(9, 2)),
            "ts": pa.array([-1, 5, None], pa.timestamp("us")),
        }
    )
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True)
    table = catalog.load_table("ns.t")
    found = statistics(table)
    assert found["s"] == {"values": 3, "nulls": 1, "nans": None, "lower": "a" * 16, "upper": "z" * 15 + "{"}
    assert (found["top"]["lower"], found["top"]["upper"]) == ("b", None)
    assert (found["bin"]["lower"], found["bin"]["upper"]) == (b"\x01" * 16, None)
    assert found["f"] == {"values": 3, "nulls": 0, "nans": 1, "lower": -1.0, "upper": 2.0}
    assert found["allnan"] == {"values": 3, "nulls": 0, "nans": 3, "lower": None, "upper": None}
    assert found["st.x"] == {"values": 3, "nulls": 1, "nans": None, "lower": 5, "upper": 7}
    assert (found["l.element"]["lower"], found["l.element"]["nans"]) == (None, 1)
    assert (found["d"]["lower"], found["d"]["upper"]) == (Decimal("-1.28"), Decimal("1.27"))
    assert (found["ts"]["lower"], found["ts"]["upper"]) == (-1, 5)


def test_no_bounds_where_a_row_group_has_none(catalog: SqlCatalog) -> None:
    # pyiceberg 0.12 gives "m" as both bounds and loses rows under this filter.
    batches = [pa.record_batch({"x": [v]}) for v in ("m", "a" * 5000, "z" * 5000)]
    dw.from_arrow(batches).write_iceberg("ns.t", catalog=catalog, create=True, row_group_rows=1)
    table = catalog.load_table("ns.t")
    assert statistics(table)["x"]["lower"] is None
    assert table.scan(row_filter=GreaterThan("x", "y")).to_arrow().num_rows == 1


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({"write.metadata.metrics.default": "none"}, {}),
        ({"write.metadata.metrics.default": "counts"}, {"a": None, "s": None}),
        ({"write.metadata.metrics.column.s": "full"}, {"a": 1, "s": "x" * 40}),
        ({"write.metadata.metrics.column.s": "truncate(2)"}, {"a": 1, "s": "xx"}),
        ({"write.metadata.metrics.max-inferred-column-defaults": "1"}, {"a": 1}),
    ],
)
def test_metrics_properties(catalog: SqlCatalog, properties: dict[str, str], expected: dict[str, Any]) -> None:
    data = pa.table({"a": [1, 2], "s": ["x" * 40, "y"]})
    table = catalog.create_table("ns.t", data.schema, properties=properties)
    dw.from_arrow(data).write_iceberg(table)
    assert {name: found["lower"] for name, found in statistics(table).items()} == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("write.format.default", "orc"),
        ("write.target-file-size-bytes", "big"),
        ("write.parquet.compression-codec", "lzo"),
        ("write.parquet.compression-level", "x"),
        ("write.metadata.metrics.default", "some"),
        ("encryption.key-id", "k"),
        ("write.parquet.bloom-filter-enabled.column.a", "yes"),
        ("write.parquet.page-version", "v3"),
        ("write.update.isolation-level", "loose"),
        ("write.delete.mode", "in-place"),
        ("write.manifest.compression-codec", "lzma"),
        ("write.avro.compression-codec", "lzma"),
        ("write.location-provider.impl", "org.example.Provider"),
        ("write.folder-storage.path", "/x"),
        ("commit.retry.num-retries", "-1"),
        ("commit.retry.min-wait-ms", "soon"),
        ("commit.status-check.num-retries", "0"),
        ("commit.manifest.target-size-bytes", "0"),
        ("commit.manifest.min-count-to-merge", "many"),
        ("commit.manifest-merge.enabled", "perhaps"),
        ("write.summary.partition-limit", "all"),
        ("write.object-storage.enabled", "1"),
        ("write.metadata.delete-after-commit.enabled", "1"),
        ("write.metadata.previous-versions-max", "x"),
    ],
)
def test_properties_that_cannot_be_honoured_are_refused(catalog: SqlCatalog, key: str, value: str) -> None:
    table = catalog.create_table("ns.t", pa.schema([("a", pa.int64())]), properties={key: value})
    with pytest.raises(dw.ConfigError, match=key):
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    assert table.refresh().current_snapshot() is None


def test_size_and_codec_properties_are_honoured(catalog: SqlCatalog) -> None:
    data = pa.table({"a": pa.array(range(300_000)), "b": [str(i * 7919 % 100_003) for i in range(300_000)]})
    properties = {
        "write.target-file-size-bytes": str(1 << 20),
        "write.parquet.compression-codec": "snappy",
        "write.parquet.row-group-limit": "10000",
    }
    table = catalog.create_table("ns.t", data.schema, properties=properties)
    result = dw.from_arrow(data).write_iceberg(table)
    sizes = [file.nbytes / (1 << 20) for file in result.files]
    assert len(sizes) > 1
    assert all(0.9 <= size <= 1.1 for size in sizes[:-1])
    group = pq.read_metadata(result.files[0].path.removeprefix("file://")).row_group(0)
    assert group.column(0).compression == "SNAPPY"
    assert group.num_rows <= 10_000
    larger = dw.from_arrow(data).write_iceberg(table, target_file_size="1 GiB", compression="gzip")
    assert len(larger.files) == 1


def test_an_existing_table_is_matched_by_name(catalog: SqlCatalog) -> None:
    schema = Schema(
        it.NestedField(7, "id", it.LongType(), required=True),
        it.NestedField(8, "opt", it.StringType(), required=False),
        it.NestedField(9, "f", it.DoubleType(), required=False),
    )
    table = catalog.create_table("ns.t", schema)
    # Field ids in the source's metadata must not decide where its columns go.
    source = pa.schema(
        [
            pa.field("f", pa.float32(), metadata={"PARQUET:field_id": "1"}),
            pa.field("id", pa.int32(), metadata={"PARQUET:field_id": "3"}),
        ]
    )
    dw.from_arrow(pa.table({"f": [1.5], "id": [1]}, schema=source)).write_iceberg(table)
    assert rows_of(table) == [{"id": 1, "opt": None, "f": 1.5}]


BAD = [
    (pa.table({"f": [1.0]}), dw.SchemaError, "'id' is required and missing"),
    (pa.table({"id": [1], "more": [1]}), dw.SchemaError, "'more' is not in the table"),
    (pa.table({"ID": [1]}), dw.SchemaError, "the table has 'id'"),
    (pa.table({"id": ["x"]}), dw.SchemaError, "'id': string"),
    (
        pa.table({"id": pa.array([1, None], pa.int64())}),
        dw.DataError,
        "'id' is required, and the data has a null",
    ),
    (pa.Table.from_arrays([[1], [2]], names=["id", "id"]), dw.SchemaError, "stands twice"),
    (pa.table({}), dw.SchemaError, "no columns"),
]


@pytest.mark.parametrize(("data", "error", "message"), BAD)
def test_data_that_does_not_fit_is_refused_and_leaves_nothing(
    catalog: SqlCatalog, tmp_path: Path, data: pa.Table, error: type[Exception], message: str
) -> None:
    schema = Schema(
        it.NestedField(1, "id", it.LongType(), required=True),
        it.NestedField(2, "f", it.DoubleType(), required=False),
    )
    table = catalog.create_table("ns.t", schema)
    before = files_below(tmp_path)
    with pytest.raises(error, match=message):
        dw.from_arrow(data).write_iceberg(table)
    assert files_below(tmp_path) == before
    assert table.refresh().current_snapshot() is None


CREATIONS = [
    (pa.table({"a": [1], "A": [2]}), None, "differ only in letter case"),
    (
        pa.table({"a": pa.nulls(1), "i": pa.array([None], pa.month_day_nano_interval())}),
        None,
        "'a': null has no Iceberg",
    ),
    (
        pa.table({"t": pa.array([1], pa.timestamp("ns"))}),
        None,
        "'t': timestamp.ns. has no Iceberg type .* coerce",
    ),
    (pa.table({"d": pa.array([1], pa.duration("s"))}), None, "'d': duration"),
    (pa.table({"a": [1]}), ["gone"], "'gone' is not in the source"),
    (pa.table({"a": [1]}), [dw.day("a")], "'a': day doesn't take int64"),
    (pa.table({"a": [1.5]}), [dw.bucket(2, "a")], "'a': bucket doesn't take double"),
    (pa.table({"a": [1]}), ["a", "a"], "two fields named 'a'"),
]


@pytest.mark.parametrize(("data", "by", "message"), CREATIONS)
def test_a_table_that_cannot_be_made_leaves_nothing(
    catalog: SqlCatalog, tmp_path: Path, data: pa.Table, by: Any, message: str
) -> None:
    before = files_below(tmp_path)
    with pytest.raises((dw.SchemaError, dw.ConfigError), match=message):
        dw.from_arrow(data).write_iceberg("fresh.t", catalog=catalog, create=True, partition_by=by)
    assert files_below(tmp_path) == before
    assert catalog.list_namespaces() == [("ns",)]


def test_nanoseconds_when_asked(catalog: SqlCatalog) -> None:
    data = pa.table({"t": pa.array([1000, None], pa.timestamp("ns"))})
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True, coerce_timestamps="us")
    assert catalog.load_table("ns.t").scan().to_arrow()["t"].cast(pa.int64()).to_pylist() == [1, None]
    with pytest.raises(dw.DataError, match="column 't'"):
        dw.from_arrow(pa.table({"t": pa.array([1], pa.timestamp("ns"))})).write_iceberg(
            "ns.t", catalog=catalog, coerce_timestamps="us"
        )


def test_an_empty_source(catalog: SqlCatalog) -> None:
    empty = pa.table({"a": pa.array([], pa.int64())})
    result = dw.from_arrow(empty).write_iceberg("ns.t", catalog=catalog, create=True)
    assert (result.snapshot_id, result.rows, result.files) == (None, 0, ())
    table = catalog.load_table("ns.t")
    assert table.current_snapshot() is None
    dw.from_arrow(pa.table({"a": [1]})).write_iceberg(table)
    before = table.refresh().current_snapshot()
    assert dw.from_arrow(empty).write_iceberg(table).snapshot_id is None
    assert table.refresh().current_snapshot() == before


def test_a_missing_table_is_an_error_that_says_how_to_make_it(catalog: SqlCatalog) -> None:
    for name in ("ns.gone", "gone.t"):
        with pytest.raises(dw.TableNotFound, match="create=True"):
            dw.from_arrow(pa.table({"a": [1]})).write_iceberg(name, catalog=catalog)
    with pytest.raises(dw.ConfigError, match="namespace.table"):
        dw.from_arrow(pa.table({"a": [1]})).write_iceberg("t", catalog=catalog)


def test_partition_by_must_agree_with_an_existing_table(catalog: SqlCatalog) -> None:
    data = pa.table({"a": [1], "b": [2]})
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True, partition_by=["a"])
    dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, create=True, partition_by=["a"])
    with pytest.raises(dw.ConfigError, match="partitioned by"):
        dw.from_arrow(data).write_iceberg("ns.t", catalog=catalog, partition_by=["b"])


def test_the_embedded_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    dw.from_arrow(pa.table({"a": [1]})).write_iceberg("demo.t", create=True)
    catalog = dw.embedded_catalog()
    assert catalog.load_table("demo.t").scan().to_arrow()["a"].to_pylist() == [1]
    assert (tmp_path / "warehouse" / "catalog.db").exists()
    catalog.close()
