"""Checks of options that are on or off."""

from __future__ import annotations

from daftwrite.errors import ConfigError

__all__ = ["check_flags"]


def check_flags(options: object, *names: str) -> None:
    """Refuse options that are neither True nor False; text such as "no" would count as on.

    Raises:
        ConfigError: naming the option.
    """
    for name in names:
        value = getattr(options, name)
        if not isinstance(value, bool):
            raise ConfigError(f"{name} must be True or False, not {value!r}")
