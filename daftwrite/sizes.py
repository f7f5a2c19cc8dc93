"""Sizes in bytes, as integers or as text such as `"512 MiB"`."""

from __future__ import annotations

import re

from daftwrite.errors import ConfigError

__all__ = ["Size", "counted", "format_size", "parse_size"]

Size = int | str

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_TEXT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_size(value: Size, name: str) -> int:
    """Turn a size into bytes.

    Args:
        value: bytes, or text with a unit: B, KB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (of 1024).
        name: the argument or option, for the error message.

    Returns:
        The size in bytes, at least 1.

    Raises:
        ConfigError: when the value is no size, or is not positive.
    """
    if isinstance(value, str):
        match = _TEXT.fullmatch(value)
        if match and match[2].lower() in _UNITS:
            size = int(float(match[1]) * _UNITS[match[2].lower()])
            if size > 0:
                return size
    elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise ConfigError(f"{name} must be a positive number of bytes or text such as '512 MiB', not {value!r}")


def format_size(nbytes: float) -> str:
    """Write a number of bytes the way people read it, such as `"1.5 MiB"`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"


def counted(number: int, thing: str) -> str:
    """A number of things for people, such as `1 file` or `1,000 files`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
