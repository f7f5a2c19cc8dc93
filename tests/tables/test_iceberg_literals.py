"""Literals that a column's type can't hold match the rows that they match in mathematics."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, NotEqualTo
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, FloatType, IcebergType, IntegerType, NestedField

import daftwrite as dw
from daftwrite.errors import ConfigError
from daftwrite.tables.iceberg.filters import RowFilter

FLOATS = [1.5, -math.inf, math.inf, None]
INTS = [1, -5, None]
DECIMALS = [Decimal("1.00"), Decimal("1.01"), None]
LONGS = [2**53 + 1, 2**53, None]
TIMES = [dt.datetime(2020, 1, 1), dt.datetime(2019, 12, 31, 23, 59, 59), None]
DATES = [dt.date(2020, 1, 1), dt.date(2020, 1, 2), None]


@pytest.mark.parametrize(
    ("kind", "values", "condition", "left"),
    [
        (pa.float32(), FLOATS, dw.col("p") == -math.inf, [1.5, math.inf, None]),
        (pa.float32(), FLOATS, dw.col("p") < 1e300, [math.inf, None]),
        (pa.float32(), FLOATS, dw.col("p") >= -1e300, [-math.inf, None]),
        (pa.float32(), FLOATS, dw.col("p") != math.inf, [math.inf, None]),
        (pa.float32(), [0.1, None], "p = 0.1", [None]),
        (pa.int32(), INTS, "p < 5000000000", [None]),
        (pa.int32(), INTS, "p > 5000000000", INTS),
        (pa.int32(), INTS, "p != 5000000000", [None]),
        (pa.int32(), INTS, dw.col("p").is_in([1, 5_000_000_000]), [-5, None]),
        (pa.int32(), INTS, ~dw.col("p").is_in([5_000_000_000]), [None]),
        (pa.int32(), INTS, "p < 0.5", [1, None]),
        (pa.int32(), INTS, "p = 0.6", INTS),
        (pa.int64(), LONGS, f"p = {2**53 + 1}", [2**53, None]),
        (pa.int64(), LONGS, f"p = '{2**53 + 1}'", [2**53, None]),
        (pa.int64(), LONGS, f"p < {2**70}", [None]),
        (pa.decimal128(9, 2), DECIMALS, "p = 1.005", DECIMALS),
        (pa.decimal128(9, 2), DECIMALS, "p >= 1.005", [Decimal("1.00"), None]),
        (pa.decimal128(9, 2), DECIMALS, "p != 1.005", [None]),
        (pa.decimal128(9, 2), DECIMALS, dw.col("p") == 1.01, [Decimal("1.00"), None]),
        (pa.date32(), DATES, dw.col("p") < dt.datetime(2020, 1, 1, 12), [DATES[1], None]),
        (pa.date32(), DATES, dw.col("p") == dt.datetime(2020, 1, 1, 12), DATES),
        (pa.date32(), DATES, dw.col("p") == dt.datetime(2020, 1, 1), [DATES[1], None]),
        (pa.timestamp("us"), TIMES, dw.col("p") >= dt.date(2020, 1, 1), [TIMES[1], None]),
        (pa.timestamp("us"), TIMES, "p < '2020-01-01'", [TIMES[0], None]),
    ],
    ids=str,
)
def test_rows_are_removed_by_what_the_literal_means(
    catalog: SqlCatalog, kind: pa.DataType, values: list[Any], condition: Any, left: list[Any]
) -> None:
    data = pa.table({"p": pa.array(values, kind)})
    table = catalog.create_table("ns.t", data.schema)
    dw.from_arrow(data).write_iceberg(table)
    empty = dw.from_arrow(data.slice(0, 0))
    empty.write_iceberg(table, mode="overwrite", overwrite_filter=condition, allow_empty=True)
    assert table.refresh().scan().to_arrow()["p"].to_pylist() == pa.array(left, kind).to_pylist()


@pytest.mark.parametrize(
    ("kind", "condition", "says"),
    [
        (pa.int64(), "p = 'x'", "'x' is not a number"),
        (pa.float64(), "p = 'nan'", "is_nan"),
        (
            pa.timestamp("us", "UTC"),
            "p = '2020-01-01'",
            "column 'p' is of type timestamptz: '2020-01-01' is not a time with a zone",
        ),
    ],
)
def test_what_is_no_number_is_refused(catalog: SqlCatalog, kind: pa.DataType, condition: Any, says: str) -> None:
    data = pa.table({"p": pa.array([1], kind)})
    table = catalog.create_table("ns.t", data.schema)
    with pytest.raises(ConfigError, match=says):
        dw.from_arrow(data).write_iceberg(table, mode="overwrite", overwrite_filter=condition)


OPERATORS: dict[Any, Any] = {
    EqualTo: lambda a, b: a == b,
    NotEqualTo: lambda a, b: a != b,
    LessThan: lambda a, b: a < b,
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
}
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.integers(-300, 300),
    st.decimals(-400, 400, places=4),
    st.floats(-400, 400, allow_nan=False),
)


@given(number=NUMBERS, held=st.integers(-300, 300), operator=st.sampled_from(list(OPERATORS)))
@pytest.mark.parametrize("kind", [IntegerType(), DecimalType(5, 2), FloatType()], ids=str)
def test_a_fitted_comparison_is_the_exact_one(kind: IcebergType, number: Any, held: int, operator: Any) -> None:
    if isinstance(kind, FloatType) and not isinstance(number, int):
        return
    schema = Schema(NestedField(1, "p", kind))
    arrow = schema.as_arrow().field(0).type
    value = Decimal(held).scaleb(-2) if isinstance(kind, DecimalType) else held
    condition: BooleanExpression = operator("p", number)
    rows = pa.table({"p": pa.array([value, None], arrow)})
    exact = Fraction(repr(number)) if isinstance(number, float) else Fraction(number)
    wanted = OPERATORS[operator](Fraction(value), exact)
    assert RowFilter(condition, schema).mask(rows).to_pylist() == [wanted, False]
    if operator is EqualTo:
        assert RowFilter(In("p", {number}), schema).mask(rows).to_pylist() == [wanted, False]
