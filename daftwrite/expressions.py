"""Row filters: `dw.col("day") == "2026-01-01"` and the like, for verbs that replace rows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from daftwrite.errors import ConfigError

__all__ = ["All", "Any_", "Column", "Comparison", "Not", "Predicate", "col"]

_SIGNS = ("==", "!=", "<", "<=", ">", ">=")


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


@dataclass(frozen=True, repr=False)
class All(Predicate):
    """Both conditions hold."""

    left: Predicate
    right: Predicate

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


@dataclass(frozen=True, repr=False)
class Any_(Predicate):  # noqa: N801  # the name without the underscore is Python's
    """One of two conditions holds."""

    left: Predicate
    right: Predicate

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


@dataclass(frozen=True, repr=False)
class Not(Predicate):
    """A condition doesn't hold."""

    inner: Predicate

    def __repr__(self) -> str:
        return f"~{self.inner!r}"


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        column = f"col({self.column!r})"
        if self.operator in _SIGNS:
            return f"({column} {self.operator} {self.value!r})"
        if self.operator == "in":
            return f"{column}.is_in({list(self.value)!r})"
        return f"{column}.{self.operator}({'' if self.value is None else repr(self.value)})"


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
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise ConfigError(f"column '{self.name}': is_in takes a list of values, not {values!r}")
        return Comparison(self.name, "in", tuple(self._checked(value) for value in values))

    def is_between(self, lower: Any, upper: Any) -> Predicate:
        """The column's value lies between two values, both included."""
        return self._compare(">=", lower) & self._compare("<=", upper)

    def starts_with(self, prefix: str) -> Predicate:
        """The column's text begins with a prefix."""
        if not isinstance(prefix, str):
            raise ConfigError(f"column '{self.name}': starts_with takes text, not {prefix!r}")
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
        return Comparison(self.name, operator, self._checked(value))

    def _checked(self, value: Any) -> Any:
        if value is None:
            raise ConfigError(f"column '{self.name}': a comparison with None never holds; use is_null()")
        if (isinstance(value, float) and math.isnan(value)) or (isinstance(value, Decimal) and value.is_nan()):
            raise ConfigError(f"column '{self.name}': NaN is not compared with; use is_nan()")
        if isinstance(value, (Column, Predicate)):
            raise ConfigError(f"column '{self.name}' can be compared with values only")
        return value


def col(name: str) -> Column:
    """A column for filters such as `dw.col("day") >= "2026-01-01"`.

    Args:
        name: the column, dotted for a nested one.

    Raises:
        ConfigError: when the name is no text.
    """
    if not isinstance(name, str):
        raise ConfigError(f"col takes the name of a column, not {name!r}")
    return Column(name)
