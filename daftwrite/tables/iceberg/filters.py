"""Row filters over Iceberg tables: parsed from what users write, and evaluated on Arrow rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    BoundReference,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    StartsWith,
    UnboundPredicate,
)
from pyiceberg.expressions import Not as IcebergNot
from pyiceberg.expressions import parser as filter_parser
from pyiceberg.expressions.literals import Literal
from pyiceberg.expressions.visitors import (
    BoundBooleanExpressionVisitor,
    bind,
    extract_field_ids,
    visit,
)
from pyiceberg.schema import Schema
from pyparsing import ParseException

from daftwrite.errors import ConfigError
from daftwrite.expressions import All, Any_, Comparison, Not, Predicate
from daftwrite.tables.iceberg.literals import fit_literals

__all__ = ["RowFilter"]

_COMPARISONS: dict[str, Any] = {
    "==": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "in": In,
    "starts_with": StartsWith,
}
_UNARY: dict[str, Any] = {"is_null": IsNull, "is_nan": IsNaN}
_NEGATIVE = (NotEqualTo, NotIn, NotNaN, NotStartsWith)


class RowFilter:
    """A filter bound to a table's schema. As in SQL, a comparison with a null doesn't hold.

    Args:
        given: SQL-like text, a pyiceberg expression, or a `dw.col` expression.
        schema: the table's schema.

    Raises:
        ConfigError: when the text can't be parsed, or names a column that isn't there or a value of another type.
    """

    def __init__(self, given: Any, schema: Schema) -> None:
        try:
            self.expression = _null_safe(fit_literals(_parse(given), schema))
            self._bound = bind(schema, self.expression, case_sensitive=True)
            self.text = given if isinstance(given, str) else repr(given)
        except RecursionError as error:
            raise ConfigError(
                "overwrite_filter has too many conditions within each other; use is_in, or between, for many values"
            ) from error
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"overwrite_filter {given if isinstance(given, str) else repr(given)}: {error}"
            ) from error

    @property
    def everything(self) -> bool:
        """Whether all rows match, whatever they hold."""
        return isinstance(self._bound, AlwaysTrue)

    @property
    def field_ids(self) -> set[int]:
        """The columns that the filter looks at."""
        ids: set[int] = extract_field_ids(self._bound)
        return ids

    def mask(self, table: pa.Table) -> pa.ChunkedArray:
        """Which rows of a table match; no nulls. The table's columns are the schema's, in its order."""
        return visit(self._bound, _Evaluation(table))


def _parse(given: Any) -> BooleanExpression:
    if isinstance(given, str):
        try:
            return filter_parser.parse(given)
        except ParseException as error:
            # Its own message lists the whole grammar.
            raise ConfigError(
                f"overwrite_filter {given!r} can't be read at {given[error.loc :]!r}; "
                'a filter is like "id > 2 and kind = \'a\'" or "ts is null"'
            ) from error
    if isinstance(given, BooleanExpression):
        return given
    if isinstance(given, Predicate):
        return _from_predicate(given)
    raise ConfigError(f"overwrite_filter takes text, a pyiceberg expression or a dw.col expression, not {given!r}")


def _from_predicate(predicate: Predicate) -> BooleanExpression:
    if isinstance(predicate, All):
        return And(_from_predicate(predicate.left), _from_predicate(predicate.right))
    if isinstance(predicate, Any_):
        return Or(_from_predicate(predicate.left), _from_predicate(predicate.right))
    if isinstance(predicate, Not):
        return IcebergNot(_from_predicate(predicate.inner))
    assert isinstance(predicate, Comparison)
    made: BooleanExpression
    if predicate.operator in _UNARY:
        made = _UNARY[predicate.operator](predicate.column)
    else:
        made = _COMPARISONS[predicate.operator](predicate.column, _value(predicate))
    return made


def _value(comparison: Comparison) -> Any:
    if comparison.operator == "in":
        return [_literal(value) for value in comparison.value]
    return _literal(comparison.value)


def _literal(value: Any) -> Any:
    """What pyiceberg takes for a value; datetimes as text, of which it keeps the zone."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dt.datetime | dt.time):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) and value.is_infinite() else value


def _null_safe(expression: BooleanExpression) -> BooleanExpression:
    """The same filter with nulls ruled out beside each negative comparison, which statistics would let pass."""
    if isinstance(expression, And):
        return And(_null_safe(expression.left), _null_safe(expression.right))
    if isinstance(expression, Or):
        return Or(_null_safe(expression.left), _null_safe(expression.right))
    if isinstance(expression, _NEGATIVE):
        assert isinstance(expression, UnboundPredicate)
        not_null: Any = NotNull
        return And(not_null(expression.term), expression)
    return expression


class _Evaluation(BoundBooleanExpressionVisitor[pa.ChunkedArray]):
    """Evaluates a bound expression without negations; a comparison with a null is false."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def _column(self, term: Any) -> pa.ChunkedArray:
        assert isinstance(term, BoundReference)
        accessor = term.accessor
        column = self._table.column(accessor.position)
        while accessor.inner is not None:
            accessor = accessor.inner
            chunks = [chunk.flatten()[accessor.position] for chunk in column.chunks]
            column = pa.chunked_array(chunks, type=column.type.field(accessor.position).type)
        if isinstance(column.type, pa.UuidType):
            column = pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
        return column

    def _all(self, value: bool) -> pa.ChunkedArray:
        return pa.chunked_array([pa.repeat(pa.scalar(value), self._table.num_rows)])

    def visit_true(self) -> pa.ChunkedArray:
        return self._all(True)

    def visit_false(self) -> pa.ChunkedArray:
        return self._all(False)

    def visit_not(self, child_result: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.invert(child_result)

    def visit_and(self, left_result: pa.ChunkedArray, right_result: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.and_(left_result, right_result)

    def visit_or(self, left_result: pa.ChunkedArray, right_result: pa.ChunkedArray) -> pa.ChunkedArray:
        return pc.or_(left_result, right_result)

    def visit_is_null(self, term: Any) -> pa.ChunkedArray:
        return pc.is_null(self._column(term))

    def visit_not_null(self, term: Any) -> pa.ChunkedArray:
        return pc.is_valid(self._column(term))

    def visit_is_nan(self, term: Any) -> pa.ChunkedArray:
        return pc.fill_null(pc.is_nan(self._column(term)), False)

    def visit_not_nan(self, term: Any) -> pa.ChunkedArray:
        return pc.fill_null(pc.invert(pc.is_nan(self._column(term))), False)

    def visit_in(self, term: Any, literals: set[Any]) -> pa.ChunkedArray:
        column = self._column(term)
        found = self._all(False)
        for literal in literals:
            found = pc.or_(found, self._compare(column, pc.equal, literal))
        return found

    def visit_not_in(self, term: Any, literals: set[Any]) -> pa.ChunkedArray:
        column = self._column(term)
        found = pc.is_valid(column)
        for literal in literals:
            found = pc.and_(found, self._compare(column, pc.not_equal, literal))
        return found

    def visit_equal(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.equal, literal)

    def visit_not_equal(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.not_equal, literal)

    def visit_greater_than_or_equal(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.greater_equal, literal)

    def visit_greater_than(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.greater, literal)

    def visit_less_than(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.less, literal)

    def visit_less_than_or_equal(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return self._compare(self._column(term), pc.less_equal, literal)

    def visit_starts_with(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return pc.fill_null(pc.starts_with(self._column(term), pattern=literal.value), False)

    def visit_not_starts_with(self, term: Any, literal: Literal[Any]) -> pa.ChunkedArray:
        return pc.fill_null(pc.invert(pc.starts_with(self._column(term), pattern=literal.value)), False)

    def _compare(self, column: pa.ChunkedArray, function: Any, literal: Any) -> pa.ChunkedArray:
        value = literal.value if isinstance(literal, Literal) else literal
        return pc.fill_null(function(column, _scalar(value, column.type)), False)


def _scalar(value: Any, kind: pa.DataType) -> pa.Scalar:
    """A literal's internal value (days, microseconds) as a scalar of a column's type."""
    if pa.types.is_date32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.scalar(value, pa.int64()).cast(kind)
    if pa.types.is_fixed_size_binary(kind) and hasattr(value, "bytes"):
        return pa.scalar(value.bytes, kind)
    return pa.scalar(value, kind)
