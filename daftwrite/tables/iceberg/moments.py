"""Dates, times and timestamps in row filters: read from text and literals without a guess at what they mean.

pyiceberg takes a number for days or microseconds since 1970, so that `d > 2020` is true of every date since July 1975,
and it drops the zone of a datetime.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

from pyiceberg.expressions.literals import DateLiteral, Literal, StringLiteral, TimeLiteral, TimestampLiteral
from pyiceberg.types import DateType, IcebergType, TimestampType, TimestamptzType, TimeType

__all__ = ["MICROSECONDS_PER_DAY", "MOMENTS", "moment"]

MOMENTS = (DateType, TimeType, TimestampType, TimestamptzType)
MICROSECONDS_PER_DAY = 86_400_000_000

_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_TIME = re.compile(_CLOCK)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}[Tt ]{_CLOCK}(?P<zone> ?([Zz]|[+-]\d{{2}}(:?\d{{2}}(:?\d{{2}})?)?))?")
_EPOCH = dt.datetime(1970, 1, 1)
_MICROSECOND = dt.timedelta(microseconds=1)
_EXAMPLES: dict[type[IcebergType], str] = {
    DateType: "a date such as '2020-01-31'",
    TimeType: "a time such as '23:59:00'",
    TimestampType: "a time without a zone such as '2020-01-31T23:59:00'",
    TimestamptzType: "a time with a zone such as '2020-01-31T23:59:00+00:00'",
}


def moment(literal: Literal[Any], kind: IcebergType) -> Literal[Any]:
    """The moment that a literal stands for.

    Args:
        literal: text in ISO 8601 or SQL form, or a literal of a date, time or timestamp.
        kind: one of `MOMENTS`.

    Returns:
        A literal of the type; for dates also a `TimestampLiteral`, which may lie within a day.

    Raises:
        ValueError: when the literal stands for none, or only one of both has a time zone.
    """
    if isinstance(literal, StringLiteral):
        try:
            found = _parse(literal.value, kind)
        except ValueError as error:
            raise ValueError(f"{literal.value!r} is not {_EXAMPLES[type(kind)]}: {error}") from error
        if found is not None:
            return found
    if isinstance(kind, DateType | TimestampType) and isinstance(literal, DateLiteral | TimestampLiteral):
        return literal if isinstance(kind, DateType) else _timestamp(literal)
    if isinstance(kind, TimestamptzType) and isinstance(literal, TimestampLiteral):
        return literal
    if isinstance(kind, TimeType) and isinstance(literal, TimeLiteral):
        return literal
    raise ValueError(f"{literal.value!r} is not {_EXAMPLES[type(kind)]}")


def _parse(text: str, kind: IcebergType) -> Literal[Any] | None:
    if isinstance(kind, TimeType):
        return TimeLiteral(_microseconds(dt.time.fromisoformat(text))) if _TIME.fullmatch(text) else None
    if _DATE.fullmatch(text) and not isinstance(kind, TimestamptzType):
        day = DateLiteral((dt.date.fromisoformat(text) - _EPOCH.date()).days)
        return day if isinstance(kind, DateType) else _timestamp(day)
    match = _TIMESTAMP.fullmatch(text)
    if match is None or bool(match["zone"]) != isinstance(kind, TimestamptzType):
        return None
    time = dt.datetime.fromisoformat(text.upper().replace(" ", "T", 1).replace(" ", ""))
    if time.tzinfo is not None:
        # Not astimezone, which overflows in the first and last hours of the calendar.
        offset = time.utcoffset() or dt.timedelta()
        return TimestampLiteral((time.replace(tzinfo=None) - _EPOCH - offset) // _MICROSECOND)
    return TimestampLiteral((time - _EPOCH) // _MICROSECOND)


def _microseconds(time: dt.time) -> int:
    return (dt.datetime.combine(_EPOCH, time) - _EPOCH) // _MICROSECOND


def _timestamp(literal: DateLiteral | TimestampLiteral) -> TimestampLiteral:
    if isinstance(literal, TimestampLiteral):
        return literal
    return TimestampLiteral(literal.value * MICROSECONDS_PER_DAY)
