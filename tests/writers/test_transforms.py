from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import transforms as reference
from pyiceberg import types as it

from daftwrite import ConfigError
from daftwrite.writers.partition_text import physical_values, value_text
from daftwrite.writers.split import PartitionSplitter
from daftwrite.writers.transforms import PartitionField, Transform, parse_partition_field

EPOCH = dt.datetime(1970, 1, 1)

# Appendix B of the Iceberg specification.
HASHES: list[tuple[Any, pa.DataType, int]] = [
    (34, pa.int32(), 2017239379),
    (34, pa.int64(), 2017239379),
    (Decimal("14.20"), pa.decimal128(9, 2), -500754589),
    (dt.date(2017, 11, 16), pa.date32(), -653330422),
    (dt.time(22, 31, 8), pa.time64("us"), -662762989),
    (dt.datetime(2017, 11, 16, 22, 31, 8), pa.timestamp("us"), -2047944441),
    (dt.datetime(2017, 11, 16, 22, 31, 8, 1), pa.timestamp("us"), -1207196810),
    (
        dt.datetime(2017, 11, 16, 14, 31, 8, tzinfo=dt.timezone(dt.timedelta(hours=-8))),
        pa.timestamp("us", "UTC"),
        -2047944441,
    ),
    ("iceberg", pa.string(), 1210000089),
    (uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, pa.uuid(), 1488055340),
    (b"\x00\x01\x02\x03", pa.binary(), -188683207),
    (b"\x00\x01\x02\x03", pa.binary(4), -188683207),
]


@pytest.mark.parametrize(("value", "kind", "hashed"), HASHES)
def test_bucket_hashes_as_the_specification_says(value: Any, kind: pa.DataType, hashed: int) -> None:
    array = pa.array([value, None], kind)
    for buckets in (1, 16, 2**31 - 1):
        expected = (hashed & 0x7FFFFFFF) % buckets
        assert Transform("bucket", buckets).apply(array).to_pylist() == [expected, None]


@pytest.mark.parametrize(("unit", "value"), [("s", -1), ("ms", -1000), ("us", -1_000_000), ("ns", -1_000_000_000)])
def test_units_of_one_instant_share_a_bucket(unit: str, value: int) -> None:
    array = pa.array([value], pa.int64()).cast(pa.timestamp(unit))
    micros = reference.BucketTransform(1000).transform(it.TimestampType())(-1_000_000)
    assert Transform("bucket", 1000).apply(array).to_pylist() == [micros]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1))
def test_bucket_and_truncate_of_longs_agree_with_pyiceberg(values: list[int | None]) -> None:
    array = pa.array(values, pa.int64())
    bucket = reference.BucketTransform(97).transform(it.LongType())
    assert Transform("bucket", 97).apply(array).to_pylist() == [None if v is None else bucket(v) for v in values]
    narrow = [None if v is None else v // 2**33 for v in values]
    cut = reference.TruncateTransform(10).transform(it.IntegerType())
    truncated = (
        Transform("truncate", 10).apply(pa.array(narrow, pa.int32()))
        if min((v or 0) for v in narrow) > -(2**31) + 10
        else None
    )
    if truncated is not None:
        assert truncated.to_pylist() == [None if v is None else cut(v) for v in narrow]


@given(st.lists(st.one_of(st.none(), st.text(max_size=20)), min_size=1), st.integers(1, 8))
def test_text_agrees_with_pyiceberg(values: list[str | None], width: int) -> None:
    array = pa.array(values, pa.string())
    bucket = reference.BucketTransform(31).transform(it.StringType())
    assert Transform("bucket", 31).apply(array).to_pylist() == [None if v is None else bucket(v) for v in values]
    assert Transform("truncate", width).apply(array).to_pylist() == [None if v is None else v[:width] for v in values]


@given(st.lists(st.decimals(-(10**15), 10**15, places=3), min_size=1), st.integers(1, 1000))
def test_decimals_agree_with_pyiceberg(values: list[Decimal], width: int) -> None:
    array = pa.array(values, pa.decimal128(38, 3))
    kind = it.DecimalType(38, 3)
    bucket = reference.BucketTransform(31).transform(kind)
    exact = array.to_pylist()
    assert Transform("bucket", 31).apply(array).to_pylist() == [bucket(v) for v in exact]

    def cut(value: Decimal) -> Decimal:
        unscaled = int(value.scaleb(3))
        return Decimal(unscaled - unscaled % width).scaleb(-3)

    assert Transform("truncate", width).apply(array).to_pylist() == [cut(v) for v in exact]


@pytest.mark.parametrize(
    ("value", "width", "expected"),
    [(1, 10, 0), (-1, 10, -10), (-10, 10, -10), (-11, 10, -20), (0, 10, 0), (15, 7, 14)],
)
def test_truncate_rounds_down(value: int, width: int, expected: int) -> None:
    for kind in (pa.int32(), pa.int64()):
        assert Transform("truncate", width).apply(pa.array([value], kind)).to_pylist() == [expected]


def test_truncate_of_decimals_is_on_unscaled_values() -> None:
    array = pa.array([Decimal("10.65"), Decimal("-0.05"), None], pa.decimal128(9, 2))
    assert Transform("truncate", 50).apply(array).to_pylist() == [Decimal("10.50"), Decimal("-0.50"), None]


def test_truncate_of_binary_and_code_points() -> None:
    assert Transform("truncate", 2).apply(pa.array([b"\x00\x01\x02"])).to_pylist() == [b"\x00\x01"]
    assert Transform("truncate", 2).apply(pa.array(["😎é日本"])).to_pylist() == ["😎é"]


@settings(max_examples=300)
@given(st.integers(-(2**55), 2**55))
def test_times_round_down_also_before_1970(micros: int) -> None:
    day = micros // 86_400_000_000
    hour = micros // 3_600_000_000
    date = EPOCH + dt.timedelta(days=day)
    array = pa.array([micros, None], pa.int64()).cast(pa.timestamp("us"))
    assert Transform("day").apply(array).to_pylist() == [day, None]
    assert Transform("hour").apply(array).to_pylist() == [hour, None]
    assert Transform("month").apply(array).to_pylist() == [(date.year - 1970) * 12 + date.month - 1, None]
    assert Transform("year").apply(array).to_pylist() == [date.year - 1970, None]
    days = pa.array([day], pa.int32()).cast(pa.date32())
    assert Transform("month").apply(days).to_pylist() == [(date.year - 1970) * 12 + date.month - 1]
    assert Transform("day").apply(days).to_pylist() == [day]


def test_the_last_second_before_a_midnight_before_1970() -> None:
    # pyiceberg-core 0.10 says -10014 here.
    array = pa.array([-865209600202811], pa.int64()).cast(pa.timestamp("us"))
    assert Transform("day").apply(array).to_pylist() == [-10015]


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("year", 43, "2013"),
        ("year", -1, "1969"),
        ("month", -1, "1969-12"),
        ("month", 516, "2013-01"),
        ("day", -1, "1969-12-31"),
        ("hour", -1, "1969-12-31-23"),
        ("hour", 376997, "2013-01-03-05"),
    ],
)
def test_human_text_of_times(name: str, value: int, text: str) -> None:
    assert value_text(Transform(name), pa.timestamp("us"), value) == text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, pa.bool_(), "true"),
        (dt.date(1969, 12, 31), pa.date32(), "1969-12-31"),
        (dt.datetime(2013, 1, 1, 5), pa.timestamp("us"), "2013-01-01T05:00:00"),
        (dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC), pa.timestamp("us", "UTC"), "2013-01-01T05:00:00+00:00"),
        (dt.time(1, 2, 3, 4), pa.time64("us"), "01:02:03.000004"),
        (Decimal("1.50"), pa.decimal128(9, 2), "1.50"),
        (b"\x00\xff", pa.binary(), "AP8="),
        (uuid.UUID(int=1).bytes, pa.uuid(), "00000000-0000-0000-0000-000000000001"),
        (None, pa.string(), None),
    ],
)
def test_human_text_of_values(value: Any, kind: pa.DataType, text: str | None) -> None:
    physical = physical_values(pa.array([value], kind))[0]
    assert value_text(Transform("identity"), kind, physical) == text


TYPES = [
    pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(9, 2), pa.date32(),
    pa.time64("us"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string(), pa.uuid(), pa.binary(4), pa.binary(),
]  # fmt: skip
ICEBERG = [
    it.BooleanType(), it.IntegerType(), it.LongType(), it.FloatType(), it.DoubleType(), it.DecimalType(9, 2), it.DateType(),
    it.TimeType(), it.TimestampType(), it.TimestamptzType(), it.StringType(), it.UUIDType(), it.FixedType(4), it.BinaryType(),
]  # fmt: skip
ORACLE = {
    "identity": reference.IdentityTransform(),
    "void": reference.VoidTransform(),
    "year": reference.YearTransform(),
    "month": reference.MonthTransform(),
    "day": reference.DayTransform(),
    "hour": reference.HourTransform(),
    "bucket": reference.BucketTransform(4),
    "truncate": reference.TruncateTransform(4),
}


@pytest.mark.parametrize("name", ORACLE)
def test_accepts_the_types_that_the_specification_lists(name: str) -> None:
    for arrow, iceberg in zip(TYPES, ICEBERG, strict=True):
        assert Transform(name).accepts(arrow) == ORACLE[name].can_transform(iceberg), (name, arrow)


def test_reads_partition_fields() -> None:
    assert parse_partition_field("carrier") == PartitionField("carrier")
    assert parse_partition_field(" month( time_hour )") == PartitionField("time_hour", Transform("month"))
    assert parse_partition_field("bucket(16, a.b)") == PartitionField("a.b", Transform("bucket", 16), "a.b_bucket")
    assert parse_partition_field("truncate(4,name)").name == "name_trunc"
    for text in ("bucket(id)", "fortnight(x)", "month(3, x)", "bucket(0, x)"):
        with pytest.raises(ConfigError):
            parse_partition_field(text)


def split(table: pa.Table, *fields: PartitionField) -> dict[tuple[str | None, ...], list[Any]]:
    splitter = PartitionSplitter(fields, table.schema, table.schema.names)
    return {tuple(text for _, text in key.texts): part.to_pylist() for key, part in splitter.split(table)}


def test_splits_floats_by_their_bits() -> None:
    table = pa.table({"f": [0.0, -0.0, math.nan, -math.nan, None, 0.0], "row": range(6)})
    parts = split(table, PartitionField("f"))
    rows = {key[0]: [row["row"] for row in part] for key, part in parts.items()}
    assert rows == {"0.0": [0, 5], "-0.0": [1], "nan": [2, 3], None: [4]}


def test_splits_by_nested_fields_with_null_parents() -> None:
    kind = pa.struct({"x": pa.int64()})
    table = pa.table({"s": pa.array([{"x": 1}, None, {"x": None}, {"x": 1}], kind), "row": range(4)})
    parts = split(table, PartitionField("s.x"))
    assert {key[0]: [row["row"] for row in part] for key, part in parts.items()} == {
        "1": [0, 3],
        None: [1, 2],
    }


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(-3, 3)), st.one_of(st.none(), st.sampled_from("abc"))),
        max_size=60,
    ),
    st.integers(0, 5),
)
def test_every_row_lands_in_its_partition_in_order(rows: list[tuple[int | None, str | None]], start: int) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.string()),
         "row": pa.array(range(len(rows)), pa.int64())}
    ).slice(start)  # fmt: skip
    splitter = PartitionSplitter((PartitionField("a"), PartitionField("b")), table.schema, ["a", "row"])
    seen: dict[tuple[Any, ...], list[int]] = {}
    if table.num_rows:
        for key, part in splitter.split(table):
            assert part.schema.names == ["a", "row"]
            assert key.values not in seen
            seen[key.values] = part["row"].to_pylist()
    expected: dict[tuple[Any, ...], list[int]] = {}
    for number, row in list(enumerate(rows))[start:]:
        expected.setdefault(row, []).append(number)
    assert seen == expected


def test_many_partitions_share_one_copy() -> None:
    table = pa.table({"a": [i % 1000 for i in range(5000)], "row": range(5000)})
    splitter = PartitionSplitter((PartitionField("a"),), table.schema, ["row"])
    parts = splitter.split(table)
    assert len(parts) == 1000
    assert all(part["row"].to_pylist() == [key.values[0] + 1000 * k for k in range(5)] for key, part in parts)
    again = splitter.split(table)
    assert all(one is other for (one, _), (other, _) in zip(parts, again, strict=True))
