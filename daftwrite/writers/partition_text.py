"""Partition values as people and paths write them."""

from __future__ import annotations

import base64
import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from daftwrite.writers.transforms import Transform

__all__ = ["physical_values", "value_text"]

pat = pa.types
_EPOCH = dt.datetime(1970, 1, 1)


def physical_values(array: pa.Array) -> list[Any]:
    """Python values in physical form: dates as days, times and timestamps as integers of their unit, uuids as bytes."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    elif pat.is_date32(kind) or pat.is_time32(kind):
        array = array.cast(pa.int32())
    elif pat.is_temporal(kind):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    return values


def value_text(transform: Transform, source: pa.DataType, value: Any) -> str | None:
    """The text of a partition value, as Iceberg's `toHumanString`; None for a null.

    Args:
        transform: the partition field's.
        source: the type of its source column.
        value: the value in physical form.
    """
    if value is None:
        return None
    if transform.name in _HUMAN:
        return _HUMAN[transform.name](value)
    if transform.name == "bucket":
        return str(value)
    return _plain_text(source, value)


def _plain_text(kind: pa.DataType, value: Any) -> str:
    try:
        if pat.is_date(kind):
            return _day(value)
        if pat.is_timestamp(kind):
            zone = "" if kind.tz is None else "+00:00"
            return _exact(_moment(value, kind.unit).isoformat(), value, kind.unit) + zone
        if pat.is_time(kind):
            return _exact(_moment(value, kind.unit).time().isoformat(), value, kind.unit)
    except OverflowError:
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == pa.uuid():
        return str(uuid.UUID(bytes=value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if pat.is_decimal(kind):
        return f"{value:f}"
    return str(value)


def _exact(text: str, value: int, unit: str) -> str:
    """Python's text of a time, with the nanoseconds that it doesn't hold."""
    if unit != "ns" or value % 1000 == 0:
        return text
    micros = "" if "." in text else ".000000"
    return f"{text}{micros}{value % 1000:03d}"


def _moment(value: int, unit: str) -> dt.datetime:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds, rest = divmod(value, per_second)
    return _EPOCH + dt.timedelta(seconds=seconds, microseconds=rest * 10**6 // per_second)


def _year(value: int) -> str:
    return f"{1970 + value:04d}"


def _month(value: int) -> str:
    years, months = divmod(value, 12)
    return f"{_year(years)}-{months + 1:02d}"


def _day(value: int) -> str:
    try:
        return (_EPOCH + dt.timedelta(days=value)).date().isoformat()
    except OverflowError:
        return str(value)


def _hour(value: int) -> str:
    days, hours = divmod(value, 24)
    return f"{_day(days)}-{hours:02d}"


_HUMAN: dict[str, Callable[[int], str]] = {"year": _year, "month": _month, "day": _day, "hour": _hour}
