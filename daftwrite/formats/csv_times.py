"""Dates and timestamps as text by a pattern such as `%d.%m.%Y`."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import ConfigError

__all__ = ["check_pattern", "format_times"]

_DIRECTIVES = "aAbBdDeFhHIjmMpRSTuUVwWyYzZf%"
_PIECES = re.compile(r"%f|(?:%[^f]|[^%])+")
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXT = pa.large_string()


def check_pattern(pattern: str | None, name: str) -> None:
    """Refuse a pattern with directives that aren't known.

    Raises:
        ConfigError: naming the option and the directive.
    """
    if pattern is None:
        return
    if not isinstance(pattern, str) or not pattern:
        raise ConfigError(f"{name} must be a pattern such as '%Y-%m-%d', not {pattern!r}")
    for directive in re.findall(r"%(.?)", pattern, re.DOTALL):
        if not directive or directive not in _DIRECTIVES:
            known = " ".join(f"%{letter}" for letter in _DIRECTIVES)
            raise ConfigError(f"{name} has '%{directive}'; known are {known}")


def format_times(array: pa.Array, pattern: str) -> pa.Array:
    """Dates or timestamps as text; as in Python and DuckDB `%S` is whole seconds and `%f` microseconds.

    Args:
        array: date32 or timestamp; one with a zone is written in UTC.
        pattern: directives as Python's strftime knows them.
    """
    if pa.types.is_date32(array.type):
        array = array.cast(pa.timestamp("s"))
    seconds = pc.floor_temporal(array, unit="second").cast(pa.timestamp("s", array.type.tz))
    pieces = [
        _micros(array, seconds) if piece == "%f" else pc.strftime(seconds, piece, locale="C").cast(_TEXT)
        for piece in _PIECES.findall(pattern)
    ]
    if len(pieces) == 1:
        return pieces[0]
    return pc.binary_join_element_wise(*pieces, pa.scalar("", _TEXT))


def _micros(array: pa.Array, seconds: pa.Array) -> pa.Array:
    per_second = _PER_SECOND[array.type.unit]
    whole = pc.multiply(seconds.cast(pa.int64()), per_second)
    fraction = pc.subtract(array.cast(pa.int64()), whole)
    micros = (
        pc.divide(fraction, per_second // 10**6) if per_second > 10**6 else pc.multiply(fraction, 10**6 // per_second)
    )
    return pc.utf8_lpad(micros.cast(_TEXT), width=6, padding="0")
