"""Row filters over Iceberg tables: parsed from what users write, and evaluated on Arrow rows."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError
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
from daftwrite.tables.iceberg.predicates import map_predicates, nullable_schema

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
# pyiceberg's pydantic models take positional arguments that type checkers don't see.
_is_null: Any = IsNull
_not_null: Any = NotNull
_NEGATIVE = (NotEqualTo, NotIn, NotNaN, NotStartsWith)


class RowFilter:
    """A filter bound to a table's schema. As in SQL, a comparison with a null doesn't hold.

    Args:
        given: SQL-like text, a pyiceberg expression, or a `dw.col` expression.
        schema: the table's schema.

    Raises:
        ConfigError: when the text can't be parsed, or names a column that isn't there or a value of another type.

    Attributes:
        text: the filter as it was given.
        schema: what `expression` is to be bound to.
        expression: the filter for pyiceberg.
    """

    def __init__(self, given: Any, schema: Schema) -> None:
        self.schema = nullable_schema(schema)
        try:
            fitted = fit_literals(_parse(given), self.schema)
            self.expression = map_predicates(fitted, _null_safe)
            self._bound = bind(self.schema, self.expression, case_sensitive=True)
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
        like = 'a filter is like "id > 2 and day = \'2020-01-31\'" or "ts is null"'
        try:
            return filter_parser.parse(given)
        except ParseException as error:
            # Its own message lists the whole grammar.
            raise ConfigError(f"overwrite_filter {given!r} can't be read at {given[error.loc :]!r}; {like}") from error
        except ValidationError as error:
            # A condition that is true or false by itself, beside another one.
            raise ConfigError(f"overwrite_filter {given!r} can't be read; {like}") from error
    if isinstance(given, BooleanExpression):
        return given
    if isinstance(given, Predicate):
        return _from_predicate(given, negated=False)
    raise ConfigError(f"overwrite_filter takes text, a pyiceberg expression or a dw.col expression, not {given!r}")


def _from_predicate(predicate: Predicate, *, negated: bool) -> BooleanExpression:
    if isinstance(predicate, All | Any_):
        left, right = (_from_predicate(side, negated=negated) for side in (predicate.left, predicate.right))
        return And(left, right) if isinstance(predicate, All) != negated else Or(left, right)
    if isinstance(predicate, Not):
        return _from_predicate(predicate.inner, negated=not negated)
    assert isinstance(predicate, Comparison)
    made: BooleanExpression
    if predicate.operator in _UNARY:
        made = _UNARY[predicate.operator](predicate.column)
    elif predicate.operator == "in" and not predicate.value:
        # pyiceberg's forgets the column.
        is_null, not_null = _is_null(predicate.column), _not_null(predicate.column)
        return not_null if negated else And(is_null, not_null)
    else:
        made = _COMPARISONS[predicate.operator](predicate.column, _value(predicate))
    return IcebergNot(made) if negated else made


def _value(comparison: Comparison) -> Any:
    if comparison.operator == "in":
        return [_literal(value) for value in comparison.value]
    return _literal(comparison.value)


def _literal(value: Any) -> Any:
    """What pyiceberg takes for a value; datetimes as text, of which it keeps the zone."""
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    if isinstance(value, np.datetime64):
        # item() of nanoseconds is a number.
        exact = value.astype("datetime64[us]")
        value = exact.item() if exact == value else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dt.datetime | dt.time):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) and value.is_infinite() else value


def _null_safe(predicate: BooleanExpression) -> BooleanExpression:
    """A negative comparison with nulls ruled out beside it, which statistics would let pass."""
    if isinstance(predicate, _NEGATIVE):
        assert isinstance(predicate, UnboundPredicate)
        return And(_not_null(predicate.term), predicate)
    return predicate


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
        if not pa.types.is_floating(column.type):
            return pc.is_in(column, pa.array([_scalar(literal, column.type) for literal in literals], column.type))
        # Zeros of either sign are equal, which is_in doesn't know.
        found = self._all(False)
        for literal in literals:
            found = pc.or_(found, self._compare(column, pc.equal, literal))
        return found

    def visit_not_in(self, term: Any, literals: set[Any]) -> pa.ChunkedArray:
        return pc.and_(pc.is_valid(self._column(term)), pc.invert(self.visit_in(term, literals)))

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
