from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daftwrite import DataError, SchemaError
from daftwrite.pipeline.align import plan_projection
from daftwrite.pipeline.micropartition import bounded_slices, decoded_nbytes
from daftwrite.pipeline.types import logical_type

UTC = dt.UTC
DAY = dt.date(1969, 12, 31)

LAYOUTS = {
    "dictionary": pa.array(["a", None, "b"]).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        pa.array([0, None, 1], pa.int8()), pa.array(["x", "y"], pa.string_view())
    ),
    "dictionary with a null in it": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 1], pa.int8()), pa.array(["x", None])
    ),
    "string view": pa.array(["a", None, "b" * 40], pa.string_view()),
    "binary view": pa.array([b"a", None, b"b" * 40], pa.binary_view()),
    "large string": pa.array(["a", None, "b"], pa.large_string()),
    "run end encoded": pc.run_end_encode(pa.array([1, 1, None])),
    "fixed size list": pa.array([[1, 2], None, [3, None]], pa.list_(pa.int8(), 2)),
    "list view": pa.array([[1, 2], None, [3, None]], pa.list_view(pa.int8())),
    "large list": pa.array([["1"], None, []], pa.large_list(pa.large_string())),
    "map": pa.array([[("a", 1)], None, []], pa.map_(pa.large_string(), pa.int16())),
    "struct": pa.array(
        [{"a": 1, "b": "x"}, None, {"a": None, "b": None}], pa.struct({"a": pa.int8(), "b": pa.string_view()})
    ),
    "list of structs": pa.array([[{"x": "1"}], None, [None]], pa.list_(pa.struct({"x": pa.large_string()}))),
    "map of structs": pa.array([[("k", {"x": 1})], None, []], pa.map_(pa.string(), pa.struct({"x": pa.int8()}))),
    "json": pa.array(["{}", None, "[]"], pa.json_()),
    "date64": pa.array([DAY, None, dt.date(2020, 2, 29)], pa.date64()),
    "uuid": pa.array([uuid.UUID(int=1).bytes, None, uuid.UUID(int=2).bytes], pa.uuid()),
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("start", [0, 1, 3])
def test_layouts_become_their_values(name: str, start: int) -> None:
    array = LAYOUTS[name]
    source = pa.schema([("c", array.type)])
    projection = plan_projection(source, pa.schema([("c", logical_type(array.type))]))
    sliced = array.slice(start)
    aligned = projection.apply(pa.Table.from_arrays([sliced], schema=source))
    aligned.validate(full=True)
    assert aligned["c"].to_pylist() == sliced.to_pylist()
    assert decoded_nbytes(pa.Table.from_arrays([sliced], schema=source)) >= 0


WIDENINGS: list[tuple[Any, pa.DataType, pa.DataType, Any]] = [
    (-5, pa.int8(), pa.int32(), -5),
    (200, pa.uint8(), pa.int32(), 200),
    (2**32 - 1, pa.uint32(), pa.int64(), 2**32 - 1),
    (2**64 - 1, pa.uint64(), pa.decimal128(20, 0), Decimal(2**64 - 1)),
    (1.5, pa.float16(), pa.float32(), 1.5),
    (1.5, pa.float32(), pa.float64(), 1.5),
    (Decimal("1.25"), pa.decimal32(5, 2), pa.decimal128(9, 4), Decimal("1.2500")),
    (Decimal("1.25"), pa.decimal256(38, 2), pa.decimal128(38, 2), Decimal("1.25")),
    (dt.datetime(1969, 12, 31, 23), pa.timestamp("s"), pa.timestamp("us"), dt.datetime(1969, 12, 31, 23)),
    (
        dt.datetime(2020, 1, 1, tzinfo=UTC),
        pa.timestamp("ms", "America/New_York"),
        pa.timestamp("us", "UTC"),
        dt.datetime(2020, 1, 1, tzinfo=UTC),
    ),
    (dt.time(1, 2, 3), pa.time32("s"), pa.time64("us"), dt.time(1, 2, 3)),
    ("é", pa.string(), pa.binary(), "é".encode()),
    ("é".encode(), pa.binary(), pa.string(), "é"),
    (b"0" * 16, pa.binary(16), pa.uuid(), uuid.UUID(bytes=b"0" * 16)),
    (b"abc", pa.binary(3), pa.binary(), b"abc"),
    (None, pa.null(), pa.string(), None),
]


@pytest.mark.parametrize(("value", "source", "target", "expected"), WIDENINGS)
def test_widens_without_changing_values(value: Any, source: pa.DataType, target: pa.DataType, expected: Any) -> None:
    projection = plan_projection(pa.schema([("c", source)]), pa.schema([("c", target)]))
    aligned = projection.apply(pa.table({"c": pa.array([value, None], source)}))
    assert aligned.schema.field("c").type == target
    assert aligned["c"].to_pylist() == [expected, None]


REFUSED = [
    (pa.int64(), pa.int32()),
    (pa.float64(), pa.float32()),
    (pa.int64(), pa.float64()),
    (pa.uint64(), pa.int32()),
    (pa.decimal128(10, 3), pa.decimal128(10, 2)),
    (pa.decimal128(11, 2), pa.decimal128(10, 2)),
    (pa.int64(), pa.decimal128(18, 0)),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.timestamp("ns"), pa.timestamp("us")),
    (pa.time64("ns"), pa.time64("us")),
    (pa.date32(), pa.timestamp("us")),
    (pa.string(), pa.int64()),
    (pa.int64(), pa.string()),
    (pa.bool_(), pa.int32()),
    (pa.binary(15), pa.uuid()),
    (pa.list_(pa.int64()), pa.list_(pa.int32())),
    (pa.list_(pa.int64()), pa.int64()),
    (pa.struct({"x": pa.int64()}), pa.struct({"x": pa.int32()})),
    (pa.struct({"x": pa.int64(), "y": pa.int64()}), pa.struct({"x": pa.int64()})),
    (pa.map_(pa.string(), pa.int64()), pa.map_(pa.string(), pa.int32())),
    (pa.duration("us"), pa.int64()),
]


@pytest.mark.parametrize(("source", "target"), REFUSED)
def test_refuses_what_could_change_values(source: pa.DataType, target: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="column 'c"):
        plan_projection(pa.schema([("c", source)]), pa.schema([("c", target)]))


def test_lists_all_differences_at_once() -> None:
    source = pa.schema([("a", pa.int64()), ("ID", pa.int64()), ("b", pa.string()), ("extra", pa.int8())])
    target = pa.schema(
        [
            pa.field("a", pa.int32()),
            pa.field("id", pa.int64()),
            pa.field("b", pa.int64()),
            pa.field("r", pa.int8(), False),
        ]
    )
    with pytest.raises(SchemaError) as caught:
        plan_projection(source, target)
    text = "\n".join(caught.value.differences)
    assert len(caught.value.differences) == 5
    for part in (
        "'a': int64",
        "'ID' is not in the table; the table has 'id'",
        "'b': string",
        "'extra'",
        "'r' is required",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "'a' stands twice"),
        (["a", "A"], "'a' and 'A' differ only in letter case"),
        ([""], "empty name"),
    ],
)
def test_refuses_names_that_clash(names: list[str], message: str) -> None:
    source = pa.schema([(name, pa.int64()) for name in names])
    with pytest.raises(SchemaError, match=message):
        plan_projection(source, pa.schema([("a", pa.int64())]))


def test_refuses_a_source_without_columns() -> None:
    with pytest.raises(SchemaError, match="no columns"):
        plan_projection(pa.schema([]), pa.schema([("a", pa.int64())]))


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (2**31, pa.uint32(), pa.int32()),
        (2**63, pa.uint64(), pa.int64()),
        (b"\xff", pa.binary(), pa.string()),
    ],
)
def test_a_value_out_of_range_is_an_error_that_names_its_column(
    value: Any, source: pa.DataType, target: pa.DataType
) -> None:
    projection = plan_projection(pa.schema([("c", source)]), pa.schema([("c", target)]))
    with pytest.raises(DataError, match="column 'c'") as caught:
        projection.apply(pa.table({"c": pa.array([value], source)}))
    assert isinstance(caught.value.__cause__, pa.ArrowInvalid)


def test_a_date64_that_is_no_whole_day_is_an_error() -> None:
    broken = pa.array([86_400_000 + 1], pa.int64()).view(pa.date64())
    projection = plan_projection(pa.schema([("c", pa.date64())]), pa.schema([("c", pa.date32())]))
    with pytest.raises(DataError, match="whole day"):
        projection.apply(pa.table({"c": broken}))


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=5))
def test_nanoseconds_are_stored_only_when_exact(values: list[int]) -> None:
    projection = plan_projection(
        pa.schema([("c", pa.timestamp("ns"))]), pa.schema([("c", pa.timestamp("us"))]), coerce_timestamps="us"
    )
    table = pa.table({"c": pa.array(values, pa.int64()).cast(pa.timestamp("ns"))})
    if all(value % 1000 == 0 for value in values):
        assert projection.apply(table)["c"].cast(pa.int64()).to_pylist() == [value // 1000 for value in values]
    else:
        with pytest.raises(DataError, match="column 'c'"):
            projection.apply(table)


def test_missing_optional_columns_become_typed_nulls() -> None:
    target = pa.schema([("a", pa.int64()), ("b", pa.struct({"x": pa.int32(), "y": pa.string()}))])
    source = pa.schema([("b", pa.struct({"y": pa.string()}))])
    aligned = plan_projection(source, target).apply(pa.table({"b": [{"y": "t"}, None]}, schema=source))
    assert aligned.to_pylist() == [{"a": None, "b": {"x": None, "y": "t"}}, {"a": None, "b": None}]


REQUIRED = [
    (pa.field("c", pa.int64(), False), [1, None], "c"),
    (pa.field("c", pa.list_(pa.field("element", pa.int64(), False))), [[1], None, [None]], "c.element"),
    (pa.field("c", pa.struct([pa.field("x", pa.int64(), False)])), [{"x": 1}, {"x": None}], "c.x"),
    (pa.field("c", pa.map_(pa.string(), pa.field("value", pa.int64(), False))), [[("k", None)]], "c.value"),
]


@pytest.mark.parametrize(("field", "values", "path"), REQUIRED)
def test_a_null_where_one_is_required_is_an_error(field: pa.Field, values: list[Any], path: str) -> None:
    loose = pa.array(values, logical_loose(field.type))
    projection = plan_projection(pa.schema([("c", loose.type)]), pa.schema([field]))
    with pytest.raises(DataError, match=f"column '{path}' is required"):
        projection.apply(pa.table({"c": loose}))


def test_a_required_field_in_a_null_struct_is_fine() -> None:
    field = pa.field("c", pa.struct([pa.field("x", pa.int64(), False)]))
    loose = pa.array([{"x": 1}, None], pa.struct({"x": pa.int64()}))
    projection = plan_projection(pa.schema([("c", loose.type)]), pa.schema([field]))
    assert projection.apply(pa.table({"c": loose}))["c"].to_pylist() == [{"x": 1}, None]


def logical_loose(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([f.with_nullable(True) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_type)
    if pa.types.is_list(kind):
        return pa.list_(kind.value_type)
    return kind


def test_a_batch_of_another_schema_is_refused_by_name() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    projection = plan_projection(schema, schema)
    with pytest.raises(SchemaError, match="column 1: 'b' int64 instead of 'b' string"):
        projection.check(pa.schema([("a", pa.int64()), ("b", pa.int64())]))


@given(rows=st.integers(0, 300), limit=st.integers(1, 2000))
def test_slices_are_bounded_and_whole(rows: int, limit: int) -> None:
    table = pa.table({"a": list(range(rows)), "b": ["x" * (i % 50) for i in range(rows)]})
    slices = list(bounded_slices(table, limit))
    assert sum(piece.num_rows for piece in slices) == rows
    assert all(piece.num_rows == 1 or decoded_nbytes(piece) <= limit for piece in slices)
    if slices:
        assert pa.concat_tables(slices).equals(table)
