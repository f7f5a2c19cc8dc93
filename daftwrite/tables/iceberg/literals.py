"""Literals of row filters fitted to their column's type without changing which rows match.

pyiceberg rounds a literal to the column's type, and takes a comparison with one beyond the type's range for true
whatever the row holds, nulls too: `int < 5000000000` would remove nulls, `decimal = 1.005` rows with 1.01.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from typing import Any

from pyiceberg.expressions import (
    AlwaysFalse,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    SetPredicate,
    StartsWith,
    UnboundPredicate,
)
from pyiceberg.expressions.literals import (
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimestampLiteral,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    PrimitiveType,
    StringType,
)

from daftwrite.tables.iceberg.moments import MICROSECONDS_PER_DAY, MOMENTS, moment

__all__ = ["fit_literals"]

# pyiceberg's pydantic models take positional arguments that type checkers don't see.
_at_most: Any = LessThanOrEqual
_at_least: Any = GreaterThanOrEqual
_not_null: Any = NotNull

_is_nan: Any = IsNaN
_FLOATS = (FloatType, DoubleType)
_ORDERINGS = (LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual)
_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_FLOAT = struct.Struct("<f")


@dataclass(frozen=True)
class _Fit:
    """A value between the greatest of a type that isn't above it and the least that isn't below it, None for none.

    Both are the same where the type can hold the value.
    """

    below: Literal[Any] | None
    above: Literal[Any] | None

    @property
    def exact(self) -> bool:
        return self.below is not None and self.below is self.above


def fit_literals(expression: BooleanExpression, schema: Schema) -> BooleanExpression:
    """The same filter without negations, and with literals that each column's type can hold.

    As in SQL, a comparison with a null doesn't hold, negated or not. NaN is neither equal to, less nor greater than
    anything, so that it matches the negation of each.

    Args:
        expression: an unbound filter.
        schema: the table's schema.

    Raises:
        ValueError: when a column isn't there, or can't be compared with what it is compared with; names the column.
    """
    return _fitted(expression, schema, negated=False)


def _fitted(expression: BooleanExpression, schema: Schema, *, negated: bool) -> BooleanExpression:
    if isinstance(expression, Not):
        return _fitted(expression.child, schema, negated=not negated)
    if isinstance(expression, And | Or):
        both = (_fitted(side, schema, negated=negated) for side in (expression.left, expression.right))
        return And(*both) if isinstance(expression, And) != negated else Or(*both)
    if not isinstance(expression, UnboundPredicate):
        return ~expression if negated else expression
    column: Any = expression.term
    kind = _type(column, schema)
    _check_operator(expression, column.name, kind)
    predicate: Any = ~expression if negated else expression
    try:
        made = _fitted_predicate(predicate, kind)
    except (ValueError, TypeError) as error:
        raise ValueError(f"column '{column.name}' is of type {kind}: {error}") from error
    if negated and isinstance(expression, _ORDERINGS) and isinstance(kind, _FLOATS):
        return Or(made, _is_nan(column))
    return made


def _type(column: Reference, schema: Schema) -> IcebergType:
    try:
        kind = column.bind(schema, case_sensitive=True).ref().field.field_type
    except ValueError as error:
        if column.name in schema.column_names:
            raise ValueError(f"column '{column.name}' is within a list or map, where filters don't look") from error
        raise ValueError(f"the table has no column '{column.name}'; it has {', '.join(schema.column_names)}") from error
    return kind


def _check_operator(expression: UnboundPredicate, name: str, kind: IcebergType) -> None:
    if isinstance(expression, IsNaN | NotNaN) and not isinstance(kind, _FLOATS):
        raise ValueError(f"column '{name}' is of type {kind}; only float and double have NaN")
    if isinstance(expression, StartsWith | NotStartsWith) and not isinstance(kind, StringType):
        raise ValueError(f"column '{name}' is of type {kind}; only strings start with something")
    if isinstance(expression, LiteralPredicate | SetPredicate) and not isinstance(kind, PrimitiveType):
        raise ValueError(f"column '{name}' is of type {kind}, which is compared with nothing")


def _fitted_predicate(expression: UnboundPredicate, kind: IcebergType) -> BooleanExpression:
    if isinstance(expression, SetPredicate):
        return _membership(expression, [(literal, _fit(literal, kind)) for literal in expression.literals])
    if isinstance(expression, LiteralPredicate):
        fit = _fit(expression.literal, kind)
        return expression if fit is None else _comparison(expression, fit)
    return expression


def _comparison(expression: LiteralPredicate, fit: _Fit) -> BooleanExpression:
    term: Any = expression.term
    made: BooleanExpression
    if fit.exact:
        kind: Any = type(expression)
        made = kind(term, fit.below)
    elif isinstance(expression, NotEqualTo):
        made = _not_null(term)
    elif isinstance(expression, LessThan | LessThanOrEqual) and fit.below is not None:
        made = _at_most(term, fit.below)
    elif isinstance(expression, GreaterThan | GreaterThanOrEqual) and fit.above is not None:
        made = _at_least(term, fit.above)
    elif isinstance(expression, EqualTo | LessThan | LessThanOrEqual | GreaterThan | GreaterThanOrEqual):
        made = AlwaysFalse()
    else:
        made = expression
    return made


def _membership(expression: SetPredicate, fits: Iterable[tuple[Literal[Any], _Fit | None]]) -> BooleanExpression:
    term: Any = expression.term
    held: set[Any] = set()
    for literal, fit in fits:
        if fit is None:
            held.add(literal)
        elif fit.exact:
            held.add(fit.below)
    if held:
        kind: Any = type(expression)
        made: BooleanExpression = kind(term, held)
        return made
    assert isinstance(expression, In | NotIn)
    return AlwaysFalse() if isinstance(expression, In) else _not_null(term)


def _fit(literal: Literal[Any], kind: IcebergType) -> _Fit | None:
    """How a type holds a literal; None where pyiceberg converts it without loss."""
    if isinstance(kind, MOMENTS):
        return _fit_moment(moment(literal, kind), kind)
    if not isinstance(kind, _NUMBERS):
        literal.to(kind)
        return None
    number = _number(literal)
    if isinstance(kind, DoubleType):
        return _fit_double(number)
    if isinstance(kind, FloatType):
        return _fit_float(number)
    if isinstance(kind, DecimalType):
        with localcontext(prec=100):
            limit = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return _fit_steps(number, kind.scale, limit.copy_negate(), limit, DecimalLiteral)
    return _fit_steps(number, 0, Decimal(kind.min), Decimal(kind.max), lambda whole: LongLiteral(int(whole)))


def _fit_moment(found: Literal[Any], kind: IcebergType) -> _Fit:
    if isinstance(kind, DateType) and isinstance(found, TimestampLiteral):
        day, rest = divmod(found.value, MICROSECONDS_PER_DAY)
        below = DateLiteral(day)
        return _Fit(below, DateLiteral(day + 1) if rest else below)
    return _held(found)


def _number(literal: Literal[Any]) -> Decimal:
    if isinstance(literal, StringLiteral):
        try:
            number = Decimal(literal.value.strip())
        except InvalidOperation:
            raise ValueError(f"{literal.value!r} is not a number") from None
        if number.is_nan():
            raise ValueError("NaN is not compared with; use is_nan")
        return number
    if isinstance(literal, DoubleLiteral | FloatLiteral):
        return Decimal(repr(literal.value))
    if isinstance(literal, LongLiteral | DecimalLiteral):
        return Decimal(literal.value)
    raise ValueError(f"{literal.value!r} is not a number")


def _held(literal: Literal[Any]) -> _Fit:
    return _Fit(literal, literal)


def _fit_double(number: Decimal) -> _Fit:
    value = float(number)
    if math.isfinite(value) or number.is_infinite():
        return _held(DoubleLiteral(value))
    if value > 0:
        return _Fit(DoubleLiteral(sys.float_info.max), DoubleLiteral(math.inf))
    return _Fit(DoubleLiteral(-math.inf), DoubleLiteral(-sys.float_info.max))


def _fit_float(number: Decimal) -> _Fit:
    value = float(number)
    if number.is_infinite():
        return _held(FloatLiteral(value))
    if abs(value) <= FloatType.max:
        (narrowed,) = _FLOAT.unpack(_FLOAT.pack(value))
        return _held(FloatLiteral(narrowed))
    if value > 0:
        return _Fit(FloatLiteral(FloatType.max), FloatLiteral(math.inf))
    return _Fit(FloatLiteral(-math.inf), FloatLiteral(FloatType.min))


def _fit_steps(
    number: Decimal, scale: int, least: Decimal, greatest: Decimal, literal: Callable[[Decimal], Literal[Any]]
) -> _Fit:
    """For types that hold the multiples of a power of ten within a range."""
    if number > greatest:
        return _Fit(literal(greatest), None)
    if number < least:
        return _Fit(None, literal(least))
    step = Decimal(1).scaleb(-scale)
    with localcontext(prec=100):
        below = number.quantize(step, rounding="ROUND_FLOOR")
        if below == number:
            return _held(literal(below))
        return _Fit(literal(below), literal(below + step))
