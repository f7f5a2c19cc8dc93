"""`dw.col` expressions: how they read, and what they don't take."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

import daftwrite as dw

A, B = dw.col("a"), dw.col("b")


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (A == 1, "(col('a') == 1)"),
        (A != "x", "(col('a') != 'x')"),
        ((A < 1) & ~(B >= 2), "((col('a') < 1) & ~(col('b') >= 2))"),
        (A.is_in([1, 2]) | B.is_null(), "(col('a').is_in([1, 2]) | col('b').is_null())"),
        (A.is_between(1, 2), "((col('a') >= 1) & (col('a') <= 2))"),
        (A.starts_with("x"), "col('a').starts_with('x')"),
        (A.is_not_null() & A.is_nan(), "(~col('a').is_null() & col('a').is_nan())"),
    ],
    ids=str,
)
def test_a_condition_reads_as_it_is_written(condition: Any, text: str) -> None:
    assert repr(condition) == text


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: dw.col(5), "col takes the name of a column, not 5"),  # type: ignore[arg-type]  # refused at run time
        (lambda: A == None, "column 'a': a comparison with None never holds; use is_null"),  # noqa: E711  # refused
        (lambda: A.is_in([1, None]), "column 'a': a comparison with None never holds"),
        (lambda: math.nan == A, "column 'a': NaN is not compared with; use is_nan"),
        (lambda: Decimal("NaN") > A, "column 'a': NaN is not compared with"),
        (lambda: Decimal("sNaN") > A, "column 'a': NaN is not compared with"),
        (lambda: A.is_in([1.0, math.nan]), "column 'a': NaN is not compared with"),
        (lambda: A.is_in("12"), "column 'a': is_in takes a list of values, not '12'"),
        (lambda: A.is_in(b"12"), "is_in takes a list of values, not b'12'"),
        (lambda: A.is_in(12), "is_in takes a list of values, not 12"),
        (lambda: A.starts_with(1), "column 'a': starts_with takes text, not 1"),
        (lambda: A == B, "column 'a' can be compared with values only"),
        (lambda: A.is_in([B]), "column 'a' can be compared with values only"),
        (lambda: (A == 1) & B, "& combines two filters"),
        (lambda: (A == 1) and (B == 2), "a filter has no truth value"),
    ],
)
def test_what_an_expression_does_not_take(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(dw.ConfigError, match=says):
        make()
