"""Row filters: `dw.col("day") == "2026-01-01"` and the like, for verbs that replace rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from daftwrite.errors import ConfigError

__all__ = ["All", "Any_", "Column", "Comparison", "Not", "Predicate", "col"]


class Predicate:
    """A condition on rows; combined with `&`, `|` and `~`."""

    def __and__(self, other: Predicate) -> Predicate:
        return All(self, _predicate(other, "&"))

    def __or__(self, other: Predicate) -> Predicate:
        return Any_(self, _predicate(other, "|"))

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise ConfigError("a filter has no truth value; combine filters with & | ~, and put each comparison in ()")


def _predicate(value: Any, sign: str) -> Predicate:
    if not isinstance(value, Predicate):
        raise ConfigError(f"{sign} combines two filters; {value!r} is none, put each comparison in ()")
    return value


@dataclass(frozen=True)
class All(Predicate):
    """Both conditions hold."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Any_(Predicate):  # noqa: N801  # the name without the underscore is Python's
    """One of two conditions holds."""

    left: Predicate
    right: Predicate


@dataclass(frozen=True)
class Not(Predicate):
    """A condition doesn't hold."""

    inner: Predicate


@dataclass(frozen=True)
class Comparison(Predicate):
    """A column compared with a value.

    Attributes:
        column: the column, dotted for a nested one.
        operator: `"=="`, `"!="`, `"<"`, `"<="`, `">"`, `">="`, `"in"`, `"starts_with"`, `"is_null"` or `"is_nan"`.
        value: what it is compared with; a tuple for `"in"`, None where there is nothing to compare.
    """

    column: str
    operator: str
    value: Any = None


@dataclass(frozen=True, eq=False)
class Column:
    """A column in a filter; made by `col`. Comparisons follow SQL: with a null they don't hold."""

    name: str

    def __eq__(self, other: object) -> Predicate:  # type: ignore[override]  # as in every frame library
        return self._compare("==", other)

    def __ne__(self, other: object) -> Predicate:  # type: ignore[override]  # as in every frame library
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Predicate:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Predicate:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Predicate:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Predicate:
        return self._compare(">=", other)

    def is_in(self, values: Iterable[Any]) -> Predicate:
        """The column's value is one of these."""
        found = tuple(values)
        if any(value is None for value in found):
            raise ConfigError(f"column '{self.name}': is_in takes no None; combine it with is_null()")
        return Comparison(self.name, "in", found)

    def is_between(self, lower: Any, upper: Any) -> Predicate:
        """The column's value lies between two values, both included."""
        return self._compare(">=", lower) & self._compare("<=", upper)

    def starts_with(self, prefix: str) -> Predicate:
        """The column's text begins with a prefix."""
        return Comparison(self.name, "starts_with", prefix)

    def is_null(self) -> Predicate:
        """The column is null."""
        return Comparison(self.name, "is_null")

    def is_not_null(self) -> Predicate:
        """The column is not null."""
        return ~self.is_null()

    def is_nan(self) -> Predicate:
        """The column is NaN."""
        return Comparison(self.name, "is_nan")

    def _compare(self, operator: str, value: Any) -> Predicate:
        if value is None:
            raise ConfigError(f"column '{self.name}': a comparison with None never holds; use is_null()")
        if isinstance(value, (Column, Predicate)):
            raise ConfigError(f"column '{self.name}' can be compared with values only")
        return Comparison(self.name, operator, value)


def col(name: str) -> Column:
    """A column for filters such as `dw.col("day") >= "2026-01-01"`.

    Args:
        name: the column, dotted for a nested one.
    """
    return Column(name)
