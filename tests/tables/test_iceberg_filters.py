"""Filters of `mode="overwrite"`: which rows they match, and which filters are refused."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import EqualTo, GreaterThan, LessThan
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType, NestedField

import daftwrite as dw
from daftwrite.tables.iceberg.filters import RowFilter
from daftwrite.tables.iceberg.scan import may_match, surely_matches
from tests.conftest import files_below

IDS = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(table: Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=repr)


def ids(table: Table) -> list[int]:
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def numbered(first: int, last: int) -> pa.Table:
    return pa.table({"id": range(first, last), "name": [f"n{i}" for i in range(first, last)]}, schema=IDS)


def write(table: Table, data: pa.Table, **options: Any) -> dw.WriteResult:
    return dw.from_arrow(data).write_iceberg(table, **options)


def left(catalog: SqlCatalog, kind: pa.DataType, values: list[Any], condition: Any) -> list[Any]:
    """What an overwrite by nothing leaves of some values."""
    data = pa.table({"x": pa.array(values, kind)})
    table = catalog.create_table("ns.t", data.schema)
    write(table, data)
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    found: list[Any] = table.refresh().scan().to_arrow()["x"].to_pylist()
    return found


def test_pyiceberg_expressions_are_filters_too(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    write(table, numbered(50, 51), mode="overwrite", overwrite_filter=GreaterThan("id", 3))
    assert ids(table) == [0, 1, 2, 3, 50]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("x != 1", [1, None, None]),
        ("x not in (1)", [1, None, None]),
        ("x < 2", [2, 3, None, None]),
        ("not (x < 2)", [1, None, None]),
        ("x is null", [1, 2, 3]),
        ("x is not null", [None, None]),
    ],
)
def test_nulls_follow_sql(catalog: SqlCatalog, condition: str, wanted: list[Any]) -> None:
    schema = pa.schema([("x", pa.int32())])
    table = catalog.create_table("ns.t", schema)
    data = pa.table({"x": [1, 2, 3, None, None]}, schema=schema)
    write(table, data)
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert sorted((r["x"] for r in rows(table)), key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize(
    ("condition", "wanted"), [("x > 1.0", 2), ("x <= 1.0", 2), ("x is nan", 2), ("x is not nan", 1)]
)
@pytest.mark.parametrize("writer", ["daftwrite", "pyiceberg"])
def test_nan_is_never_removed_by_what_statistics_do_not_tell(
    catalog: SqlCatalog, condition: str, wanted: int, writer: str
) -> None:
    """pyiceberg counts no NaN while writing, and takes a missing count for zero while deleting."""
    schema = pa.schema([("x", pa.float64())])
    table = catalog.create_table("ns.t", schema)
    for value in (0.5, 1.5):
        data = pa.table({"x": [value, float("nan")]}, schema=schema).slice(0, 2)
        if writer == "daftwrite":
            write(table, data)
        else:
            table.append(data)
    before = [r["x"] for r in rows(table)]
    write(table, pa.table({"x": []}, schema=schema), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    after = [r["x"] for r in rows(table)]
    nans = [x for x in after if x != x]
    assert len(before) == 4
    assert len(nans) == {"x > 1.0": 2, "x <= 1.0": 2, "x is nan": 0, "x is not nan": 2}[condition]
    assert (
        sorted(x for x in after if x == x)
        == {
            "x > 1.0": [0.5],
            "x <= 1.0": [1.5],
            "x is nan": [0.5, 1.5],
            "x is not nan": [],
        }[condition]
    )


TYPES: list[tuple[pa.DataType, list[Any], str, list[int]]] = [
    (pa.date32(), [dt.date(1969, 12, 31), dt.date(2026, 1, 1)], "x < '1970-01-01'", [1]),
    (pa.timestamp("us"), [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 1, 1)], "x < '1970-01-01T00:00:00'", [1]),
    (pa.timestamp("us", "UTC"), [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], "x < '1970-01-01T00:00:00+00:00'", [1]),
    (pa.time64("us"), [dt.time(1), dt.time(23)], "x < '12:00:00'", [1]),
    (pa.decimal128(9, 2), [Decimal("-1.50"), Decimal("7.25")], "x < 0.00", [1]),
    (pa.decimal128(30, 2), [Decimal("-1.50"), Decimal("7.25")], "x < 0.00", [1]),
    (pa.string(), ["abc", "zebra"], "x like 'ab%'", [1]),
    (pa.string(), ["abc", "zebra"], "x not like 'ab%'", [0]),
    (pa.bool_(), [False, True], "x = false", [1]),
    (pa.float32(), [-1.5, 2.5], "x < 0", [1]),
    (pa.uuid(), [uuid.UUID(int=1).bytes, uuid.UUID(int=2).bytes], "x = '00000000-0000-0000-0000-000000000001'", [1]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "condition", "left"), TYPES)
def test_filters_know_every_type(
    catalog: SqlCatalog, kind: pa.DataType, values: list[Any], condition: str, left: list[int]
) -> None:
    schema = pa.schema([("x", kind), ("n", pa.int64())])
    table = catalog.create_table("ns.t", schema)
    data = pa.table({"x": pa.array(values, kind), "n": [0, 1]}, schema=schema)
    write(table, data)
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert [r["n"] for r in rows(table)] == left


@pytest.mark.parametrize(
    ("condition", "named"),
    [
        ("nowhere = 1", "nowhere"),
        ("id >", "id >"),
        ("id = 'x'", "id"),
        (5, "5"),
    ],
)
def test_a_filter_that_does_not_fit_is_refused_before_anything_is_read(
    catalog: SqlCatalog, condition: Any, named: str, tmp_path: Path
) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 3))
    before = files_below(tmp_path)
    with pytest.raises(dw.ConfigError, match="overwrite_filter") as caught:
        write(table, numbered(5, 6), mode="overwrite", overwrite_filter=condition)
    assert named in str(caught.value)
    assert files_below(tmp_path) == before


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("s.x = 1", [1, 2]),
        ("s.x != 1", [0, 1, 2]),
        ("s.x < 5", [1, 2]),
        ("s.x is null", [0]),
        ("s.x is not null", [1, 2]),
        ("s.x in (1, 2)", [1, 2]),
        ("s.x not in (2)", [1, 2]),
        ("not (s.y = 'a')", [0, 2]),
        ("s.y like 'a%'", [1, 2]),
        ("s.y not like 'a%'", [0, 2]),
        ("s.f is nan", [1, 2]),
        ("s.f is not nan", [0, 2]),
    ],
)
def test_nested_columns_are_filtered_with_null_parents(catalog: SqlCatalog, condition: str, left: list[int]) -> None:
    parents = [{"x": 1, "y": "a", "f": math.nan}, {"x": None, "y": "b", "f": 1.0}, None]
    type_ = pa.struct([("x", pa.int64()), ("y", pa.string()), ("f", pa.float64())])
    data = pa.table({"id": [0, 1, 2], "s": pa.array(parents, type_)})
    table = catalog.create_table("ns.t", data.schema)
    write(table, data)
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert ids(table) == left


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("s.x is not null", [1]),
        ("s.x is null", [0, 2]),
        ("s.x != 1.5", [1]),
        ("s.x != 1", [0, 1]),
        ("s.x not in (1, 5)", [0, 1, 2]),
        (~dw.col("s.x").is_null(), [1]),
        (~dw.col("s.x").is_in([]), [1]),
        ("s.x < 99 or s.x > 100", [1]),
    ],
    ids=str,
)
@pytest.mark.parametrize("partition_by", [None, dw.bucket(4, "s.x")], ids=str)
def test_a_required_field_is_null_where_its_optional_parent_is(
    catalog: SqlCatalog, condition: Any, left: list[int], partition_by: Any
) -> None:
    kind = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    data = pa.table({"id": [0, 1, 2], "s": pa.array([{"x": 1}, None, {"x": 5}], kind)})
    frame = dw.from_arrow(data)
    frame.write_iceberg("ns.t", catalog=catalog, create=True, partition_by=partition_by)
    table = catalog.load_table("ns.t")
    assert table.schema().find_field("s.x").required
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert ids(table) == left


@pytest.mark.parametrize("transform", [IdentityTransform(), BucketTransform(4)], ids=str)
def test_a_partition_of_a_column_that_was_dropped_is_kept(catalog: SqlCatalog, transform: Any) -> None:
    data = pa.table({"n": [0, 1, 2, 3], "x": pa.array([Decimal(1), Decimal(1), Decimal(2), None], pa.decimal128(9, 2))})
    table = catalog.create_table("ns.t", data.schema)
    with table.update_spec() as update:
        update.add_field("x", transform, "p")
    write(table, data)
    with table.update_spec() as update:
        update.remove_field("p")
    with table.update_schema() as schema:
        schema.delete_column("x")
    rest = data.select(["n"])
    write(table, rest.slice(0, 0), mode="overwrite", overwrite_filter="n = 0", allow_empty=True)
    write(table, rest.slice(0, 1))
    write(table, rest.slice(0, 0), mode="overwrite", overwrite_filter="n in (2, 3)", allow_empty=True)
    assert sorted(table.refresh().scan().to_arrow()["n"].to_pylist()) == [0, 1]


def test_a_bound_that_is_nan_proves_nothing() -> None:
    schema = Schema(NestedField(1, "x", DoubleType()))
    bounds = {1: to_bytes(DoubleType(), 1.0)}, {1: to_bytes(DoubleType(), NAN)}
    for lower, upper in (bounds, bounds[::-1]):
        file = DataFile.from_args(
            record_count=3,
            value_counts={1: 3},
            null_value_counts={1: 0},
            nan_value_counts={1: 1},
            lower_bounds=lower,
            upper_bounds=upper,
        )
        assert not surely_matches(file, RowFilter("x not in (5.0, 6.0)", schema))
        assert may_match(file, RowFilter("x = 5.0", schema))


NAN = math.nan


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize(
    ("condition", "stay"),
    [
        ("not (x <= 1)", ["1.0", "None"]),
        ("not (x < 1)", ["None"]),
        ("not (x > 1)", ["2.0", "None"]),
        ("not (x >= 1)", ["1.0", "2.0", "None"]),
        ("not (x = 1)", ["1.0", "None"]),
        ("not (x between 0 and 1)", ["1.0", "None"]),
        ("not (x not in (1, 2))", ["None", "nan"]),
        ("not (x <= 1 and x >= 0)", ["1.0", "None"]),
        ("not (not (x <= 1))", ["2.0", "None", "nan"]),
        ("not (x is nan)", ["None", "nan"]),
        ("x is not nan", ["None", "nan"]),
        (~(dw.col("x") > 1), ["2.0", "None"]),
        (~LessThan("x", 5.0), ["1.0", "2.0", "None", "nan"]),  # pyiceberg negates its own expressions at once
    ],
    ids=str,
)
def test_nan_matches_what_no_comparison_with_it_holds(
    catalog: SqlCatalog, kind: pa.DataType, condition: Any, stay: list[str]
) -> None:
    assert sorted(map(str, left(catalog, kind, [1.0, 2.0, NAN, None], condition))) == sorted(stay)


NOON = dt.datetime(2020, 1, 1, 12)
TIMES = [NOON, dt.datetime(2019, 12, 31, 23, 59, 59, 999_999), None]
ZONED = [None if time is None else time.replace(tzinfo=dt.UTC) for time in TIMES]
EAST = dt.timezone(dt.timedelta(hours=2))


@pytest.mark.parametrize(
    ("kind", "values", "condition", "stay"),
    [
        (pa.timestamp("us"), TIMES, "x >= '2020-01-01 00:00:00'", TIMES[1:]),
        (pa.timestamp("us"), TIMES, "x >= '2020-01-01T00:00'", TIMES[1:]),
        (pa.timestamp("us"), TIMES, "x = '2019-12-31 23:59:59.999999'", [NOON, None]),
        (pa.timestamp("us"), TIMES, dw.col("x") == np.datetime64("2020-01-01T12:00:00"), TIMES[1:]),
        (pa.timestamp("us"), TIMES, EqualTo("x", NOON), TIMES[1:]),
        (pa.timestamp("us", "UTC"), ZONED, "x >= '2020-01-01T12:00:00Z'", ZONED[1:]),
        (pa.timestamp("us", "UTC"), ZONED, "x >= '2020-01-01 14:00:00+02:00'", ZONED[1:]),
        (pa.timestamp("us", "UTC"), ZONED, "x > '2020-01-01 14:00:00 +0200'", ZONED),
        (pa.timestamp("us", "UTC"), ZONED, dw.col("x") >= NOON.replace(hour=14, tzinfo=EAST), ZONED[1:]),
        (pa.timestamp("us", "UTC"), ZONED, "x < '0001-01-01T00:00:00+14:00'", ZONED),
        (pa.date32(), [dt.date(2020, 1, 1), dt.date(2019, 12, 31)], "x >= '2019-12-31 12:00:00'", [dt.date(2019, 12, 31)]),
        (pa.date32(), [dt.date(2020, 1, 1), dt.date(2019, 12, 31)], "x in ('2020-01-01', '2019-12-31 01:00')", [dt.date(2019, 12, 31)]),
        (pa.time64("us"), [dt.time(12, 30), dt.time(1)], "x = '12:30'", [dt.time(1)]),
        (pa.time64("us"), [dt.time(12, 30), dt.time(1)], dw.col("x") < dt.time(1, 0, 0, 1), [dt.time(12, 30)]),
        (pa.int64(), [1, 2], dw.col("x") == np.int64(2), [1]),
        (pa.int64(), [1, 2], dw.col("x").is_in(np.array([2, 3])), [1]),
        (pa.int64(), [1, 2], dw.col("x").is_in(pa.array([2, 3])), [1]),
        (pa.decimal128(5, 2), [Decimal("1.00"), None], dw.col("x") < Decimal("Infinity"), [None]),
        (pa.binary(), [b"a", b"b"], dw.col("x") == b"a", [b"b"]),
        (pa.binary(), [b"a", b"b", None], ~dw.col("x").is_in([b"a"]), [b"a", None]),
        (pa.decimal128(38, 2), [Decimal("1.00"), None], dw.col("x") < Decimal("1e40"), [None]),
        (pa.decimal128(38, 2), [Decimal("1.00"), None], dw.col("x") <= Decimal("-1e40"), [Decimal("1.00"), None]),
        (pa.int64(), [1, None], dw.col("x").is_in([]), [1, None]),
        (pa.int64(), [1, None], ~dw.col("x").is_in([]), [None]),
        (pa.int64(), [1, None], ~((dw.col("x") == 5) | ~~dw.col("x").is_in([])), [None]),
        (pa.float64(), [1.0, math.inf], dw.col("x") == Decimal("1e400"), [1.0, math.inf]),
        (pa.float64(), [1.0, math.inf], dw.col("x") > Decimal("1e400"), [1.0]),
        (pa.float64(), [1.0, math.inf, -math.inf], dw.col("x") > Decimal("-1e400"), [-math.inf]),
        (pa.float64(), [0.0, -0.0, 1.0], dw.col("x").is_in([0.0]), [1.0]),
        (pa.timestamp("us"), TIMES, dw.col("x") == np.datetime64("2020-01-01T12:00:00", "ns"), TIMES[1:]),
        (pa.timestamp("us", "UTC"), ZONED, "x >= '2020-01-01t12:00:00z'", ZONED[1:]),
        (pa.timestamp("us", "UTC"), ZONED, dw.col("x") < dt.datetime(1800, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), ZONED),
    ],
    ids=str,
)  # fmt: skip
def test_values_are_read_as_they_are_meant(
    catalog: SqlCatalog, kind: pa.DataType, values: list[Any], condition: Any, stay: list[Any]
) -> None:
    assert left(catalog, kind, values, condition) == stay


NAIVE, AWARE = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "condition", "says"),
    [
        (pa.date32(), "x > 2020", "column 'x' is of type date: 2020 is not a date such as '2020-01-31'"),
        (pa.date32(), "x in (1, 2)", "is not a date such as"),
        (pa.date32(), "x = true", "True is not a date"),
        (pa.date32(), "x > 1.5", "is not a date"),
        (pa.date32(), "x = '2020-02-30'", "'2020-02-30' is not a date such as '2020-01-31': day"),
        (pa.date32(), "x = '2020-01-31T00:00:00Z'", "is not a date such as"),
        (pa.date32(), dw.col("x") == NOON.replace(tzinfo=dt.UTC), "is not a date such as"),
        (pa.time64("us"), "x > 12", "12 is not a time such as '23:59:00'"),
        (pa.time64("us"), "x > '12:00:00+01:00'", "is not a time such as"),
        (pa.time64("us"), dw.col("x") == dt.date(2020, 1, 1), "is not a time such as"),
        (NAIVE, "x > 1577836800", "1577836800 is not a time without a zone such as"),
        (NAIVE, "x > '2020-01-01T00:00:00Z'", "is not a time without a zone"),
        (NAIVE, dw.col("x") > NOON.replace(tzinfo=dt.UTC), "is not a time without a zone"),
        (NAIVE, "x > '2020-01-01T00:00:00.0000001'", "is not a time without a zone"),
        (AWARE, "x > '2020-01-01T00:00:00'", r"is not a time with a zone such as '2020-01-31T23:59:00\+00:00'"),
        (AWARE, "x > '2020-01-01'", "is not a time with a zone"),
        (AWARE, dw.col("x") > NOON, "is not a time with a zone"),
        (AWARE, dw.col("x") > dt.date(2020, 1, 1), "is not a time with a zone"),
        (AWARE, "x > 5", "is not a time with a zone"),
        (pa.int64(), "x like '1%'", "column 'x' is of type long; only strings start with something"),
        (pa.int64(), dw.col("x").starts_with("1"), "only strings start with something"),
        (pa.binary(), dw.col("x").starts_with("1"), "only strings start with something"),
        (pa.int64(), "x is nan", "column 'x' is of type long; only float and double have NaN"),
        (pa.int64(), ~dw.col("x").is_nan(), "only float and double have NaN"),
        (pa.int64(), "x = true", "column 'x' is of type long: True is not a number"),
        (pa.string(), "x = 1", "column 'x' is of type string"),
        (pa.bool_(), "x = 1", "column 'x' is of type boolean"),
        (pa.uuid(), "x = 'abc'", "column 'x' is of type uuid"),
        (pa.int64(), dw.col("x") == np.datetime64("2020-01-01T12:00:00", "ns"), "column 'x' is of type long"),
        (NAIVE, dw.col("x") == np.datetime64("2020-01-01T12:00:00.000000001", "ns"), "is not a time without a zone"),
        (pa.list_(pa.int64()), "x.element = 1", "column 'x.element' is within a list or map"),
        (pa.int64(), "x = 1 or true", "can't be read; a filter is like"),
        (pa.int64(), ~dw.col("y").is_in([]), "the table has no column 'y'"),
        (pa.list_(pa.int64()), "x = 1", "column 'x' is of type list<long>, which is compared with nothing"),
        (pa.int64(), "y = 1", "the table has no column 'y'; it has x"),
        (pa.int64(), dw.col("x") == {"a": 1}, r"\(col\('x'\) == \{'a': 1\}\)"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused(
    catalog: SqlCatalog, kind: pa.DataType, condition: Any, says: str, tmp_path: Path
) -> None:
    data = pa.table({"x": pa.array([None], kind)})
    table = catalog.create_table("ns.t", data.schema)
    before = files_below(tmp_path)
    with pytest.raises(dw.ConfigError, match=says):
        write(table, data, mode="overwrite", overwrite_filter=condition)
    assert files_below(tmp_path) == before


@pytest.mark.parametrize("field", [dw.year("x"), dw.month("x"), dw.day("x"), dw.bucket(4, "x")], ids=str)
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")], ids=str)
def test_filters_at_the_ends_of_the_calendar(catalog: SqlCatalog, field: Any, kind: pa.DataType) -> None:
    first, last = (dt.date.min, dt.date.max) if kind == pa.date32() else (dt.datetime.min, dt.datetime.max)
    column = pa.array([dt.date(2020, 1, 1), None] if kind == pa.date32() else [NOON, None], kind)
    data = dw.from_arrow(pa.table({"x": column, "id": [0, 1]}))
    data.write_iceberg("ns.t", catalog=catalog, create=True, partition_by=[field])
    table = catalog.load_table("ns.t")
    nothing = pa.table({"x": column, "id": [0, 1]}).slice(0, 0)
    for condition, left in (
        (dw.col("x") > last, [0, 1]),
        (dw.col("x") < first, [0, 1]),
        ((dw.col("x") >= first) & (dw.col("x") <= last), [1]),
    ):
        write(table, nothing, mode="overwrite", overwrite_filter=condition, allow_empty=True)
        assert ids(table) == left


def test_conditions_too_many_to_be_nested_are_refused(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    condition = dw.col("id") == 0
    for number in range(1, 5000):
        condition |= dw.col("id") == number
    with pytest.raises(dw.ConfigError, match="use is_in"):
        write(table, numbered(0, 1), mode="overwrite", overwrite_filter=condition)


def test_a_long_list_of_values_is_one_condition(catalog: SqlCatalog) -> None:
    table = catalog.create_table("ns.t", IDS)
    write(table, numbered(0, 10))
    condition = dw.col("id").is_in(range(5, 5000))
    write(table, numbered(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert ids(table) == [0, 1, 2, 3, 4]


UUIDS = [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=2**128 - 1)]


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize(
    ("condition", "stay"),
    [
        (f"u = '{UUIDS[0]}'", [1, 2, 3]),
        (dw.col("u") == UUIDS[2], [0, 1, 3]),
        (dw.col("u").is_in(UUIDS[:2]), [2, 3]),
        (~dw.col("u").is_in(UUIDS[:2]), [0, 1, 3]),
        (dw.col("u") != UUIDS[0], [0, 3]),
        (dw.col("u") < UUIDS[1], [1, 2, 3]),
        (dw.col("u") >= UUIDS[1], [0, 3]),
        (dw.col("u").is_between(UUIDS[0], UUIDS[1]), [2, 3]),
        ("u is null", [0, 1, 2]),
    ],
    ids=str,
)
@pytest.mark.parametrize("partition_by", ["u", dw.bucket(4, "u"), None], ids=str)
def test_partitions_of_uuids_are_found(
    catalog: SqlCatalog, condition: Any, stay: list[int], partition_by: Any, version: str
) -> None:
    data = pa.table({"id": [0, 1, 2, 3], "u": pa.array([*(u.bytes for u in UUIDS), None], pa.uuid())})
    options = {"format-version": version, "write.summary.partition-limit": "10"}
    frame = dw.from_arrow(data)
    frame.write_iceberg("ns.t", catalog=catalog, create=True, partition_by=partition_by, properties=options)
    table = catalog.load_table("ns.t")
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert ids(table) == stay
    if partition_by == "u":
        summary = table.current_snapshot().summary.additional_properties
        named = {str(UUIDS[n]) if n < 3 else "null" for n in set(range(4)) - set(stay)}
        assert {name for name in summary if name.startswith("partitions.")} == {f"partitions.u={u}" for u in named}


@pytest.mark.parametrize("partition_by", ["u", None])
@pytest.mark.parametrize("condition", [dw.col("u") == UUIDS[2], dw.col("u").is_in(UUIDS), dw.col("u") > UUIDS[1]])
def test_bounds_of_uuids_in_the_order_of_java_hide_no_rows(
    catalog: SqlCatalog, condition: Any, partition_by: str | None
) -> None:
    """Iceberg's Java library compared UUIDs as two signed numbers until 1.11: the one of all ones is the least."""
    data = pa.table({"id": [0, 2], "u": pa.array([UUIDS[0].bytes, UUIDS[2].bytes], pa.uuid())})
    frame = dw.from_arrow(data)
    frame.write_iceberg("ns.t", catalog=catalog, create=True, partition_by=partition_by)
    table = catalog.load_table("ns.t")
    snapshot = table.current_snapshot()
    for manifest in snapshot.manifests(table.io):
        swap_bounds(manifest.manifest_path, lambda entry: bounds_of_columns(entry["data_file"]))
    swap_bounds(snapshot.manifest_list, lambda listed: listed["partitions"])
    table = catalog.load_table("ns.t")
    write(table, data.slice(0, 0), mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert UUIDS[2].bytes not in [row["u"].bytes for row in rows(table)]


def bounds_of_columns(file: dict[str, Any]) -> list[dict[str, Any]]:
    """The bounds of the UUID column, which is the second; none where both are one value."""
    lower = next(bound for bound in file["lower_bounds"] if bound["key"] == 2)
    upper = next(bound for bound in file["upper_bounds"] if bound["key"] == 2)
    lower["value"], upper["value"] = upper["value"], lower["value"]
    return []


def swap_bounds(location: str, summaries: Any) -> None:
    path = Path(location.removeprefix("file://"))
    with path.open("rb") as stream:
        reader = fastavro.reader(stream)
        schema, metadata, records = reader.writer_schema, reader.metadata, list(reader)
    for record in records:
        for summary in summaries(record):
            summary["lower_bound"], summary["upper_bound"] = summary["upper_bound"], summary["lower_bound"]
    kept = {name: value for name, value in metadata.items() if not name.startswith("avro.")}
    with path.open("wb") as stream:
        fastavro.writer(stream, schema, records, metadata=kept)
