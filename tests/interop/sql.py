"""Filters of the matrix in the SQL of DuckDB and DataFusion, and as expressions of pyiceberg and Polars."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl
from pyiceberg.expressions import BooleanExpression, EqualTo, IsNaN, IsNull, LessThan, NotNull

from tests.interop.matrix import Filter


def where(condition: Filter, dialect: str) -> str:
    """The condition as SQL."""
    column = condition.column
    if condition.op == "null":
        return f"{column} is null"
    if condition.op == "not null":
        return f"{column} is not null"
    if condition.op == "nan":
        return f"isnan({column})"
    return f"{column} {condition.op} {_literal(condition.value, dialect)}"


def _decimal(value: Decimal) -> str:
    return f"cast('{value:f}' as decimal({'38, 10' if value.as_tuple().exponent == -10 else '9, 2'}))"


def _literal(value: Any, dialect: str) -> str:
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, float):
        return f"cast('{value}' as double)"
    if isinstance(value, bool | int):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return f"timestamp '{value}'"
        return f"timestamptz '{value}'" if dialect == "duckdb" else f"timestamp with time zone '{value}'"
    if isinstance(value, dt.date):
        return f"date '{value}'"
    if isinstance(value, dt.time):
        return f"time '{value}'" if dialect == "duckdb" else f"arrow_cast('{value}', 'Time64(Microsecond)')"
    if isinstance(value, UUID):
        return f"uuid '{value}'" if dialect == "duckdb" else _literal(value.bytes, dialect)
    if isinstance(value, bytes):
        if dialect == "duckdb":
            return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::blob"
        return f"X'{value.hex()}'"
    return "'" + str(value).replace("'", "''") + "'"


def pyiceberg_expression(condition: Filter) -> BooleanExpression:
    """The condition for pyiceberg."""
    unary: dict[str, Any] = {"null": IsNull, "not null": NotNull, "nan": IsNaN}
    made: BooleanExpression
    if condition.op in unary:
        made = unary[condition.op](condition.column)
        return made
    value = condition.value
    if isinstance(value, dt.time | dt.datetime):
        value = value.isoformat()
    compare: Any = EqualTo if condition.op == "=" else LessThan
    made = compare(condition.column, value)
    return made


def polars_expression(condition: Filter) -> pl.Expr:
    """The condition for Polars, where NaN is equal to itself and greater than all."""
    column = pl.col(condition.column)
    if condition.op == "null":
        return column.is_null()
    if condition.op == "not null":
        return column.is_not_null()
    if condition.op == "nan":
        return column.is_nan()
    value = condition.value.bytes if isinstance(condition.value, UUID) else condition.value
    return column == value if condition.op == "=" else column < value
