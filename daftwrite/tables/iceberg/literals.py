"""Literals of row filters fitted to their column's type without changing which rows match.

pyiceberg rounds a literal to the column's type, and takes a comparison with one beyond the type's range for true
whatever the row holds, nulls too: `int < 5000000000` would remove nulls, `decimal = 1.005` rows with 1.01.
"""

from __future__ import annotations

import math
import re
import struct
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
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    NotEqualTo,
    NotIn,
    NotNull,
    Or,
    SetPredicate,
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
    TimestampType,
)
from pyiceberg.utils.datetime import date_str_to_days

__all__ = ["fit_literals"]

# pyiceberg's pydantic models take positional arguments that type checkers don't see.
_at_most: Any = LessThanOrEqual
_at_least: Any = GreaterThanOrEqual
_not_null: Any = NotNull

_NUMBERS = (IntegerType, LongType, FloatType, DoubleType, DecimalType)
_FLOAT = struct.Struct("<f")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MICROSECONDS_PER_DAY = 86_400_000_000


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
    """The same filter with literals that each column's type can hold.

    Args:
        expression: an unbound filter without negations.
        schema: the table's schema.

    Raises:
        ValueError: when a column isn't there, or text stands for no number.
    """
    if isinstance(expression, And):
        return And(fit_literals(expression.left, schema), fit_literals(expression.right, schema))
    if isinstance(expression, Or):
        return Or(fit_literals(expression.left, schema), fit_literals(expression.right, schema))
    if not isinstance(expression, LiteralPredicate | SetPredicate):
        return expression
    kind = expression.term.bind(schema, case_sensitive=True).ref().field.field_type
    if isinstance(expression, SetPredicate):
        return _membership(expression, [(literal, _fit(literal, kind)) for literal in expression.literals])
    fit = _fit(expression.literal, kind)
    return expression if fit is None else _comparison(expression, fit)


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
    """How a type holds a literal; None where pyiceberg converts it without loss or refuses it."""
    if isinstance(kind, DateType) and isinstance(literal, TimestampLiteral):
        day, rest = divmod(literal.value, _MICROSECONDS_PER_DAY)
        below = DateLiteral(day)
        return _Fit(below, DateLiteral(day + 1) if rest else below)
    if isinstance(kind, TimestampType):
        midnight = _day(literal)
        return None if midnight is None else _held(TimestampLiteral(midnight * _MICROSECONDS_PER_DAY))
    if not isinstance(kind, _NUMBERS):
        return None
    number = _number(literal)
    if number is None:
        return None
    if isinstance(kind, DoubleType):
        return _held(DoubleLiteral(float(number)))
    if isinstance(kind, FloatType):
        return _fit_float(float(number))
    if isinstance(kind, DecimalType):
        limit = Decimal(10**kind.precision - 1).scaleb(-kind.scale)
        return _fit_steps(number, kind.scale, -limit, limit, DecimalLiteral)
    return _fit_steps(number, 0, Decimal(kind.min), Decimal(kind.max), lambda whole: LongLiteral(int(whole)))


def _day(literal: Literal[Any]) -> int | None:
    """The day that a date, or text of nothing but a date, stands for."""
    if isinstance(literal, DateLiteral):
        return literal.value
    if isinstance(literal, StringLiteral) and _DATE.fullmatch(literal.value):
        return date_str_to_days(literal.value)
    return None


def _number(literal: Literal[Any]) -> Decimal | None:
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
    return None


def _held(literal: Literal[Any]) -> _Fit:
    return _Fit(literal, literal)


def _fit_float(value: float) -> _Fit:
    if math.isinf(value):
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
