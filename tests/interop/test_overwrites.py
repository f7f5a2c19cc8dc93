"""Overwrites by every kind of filter on the tables of the matrix: neither a row too many nor one too few."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import daftwrite as dw
from daftwrite.expressions import Predicate
from tests.interop.matrix import NAN_TYPES, TYPES, Case, canonical, cases, expected_rows

CASES = [case for case in cases() if case.kind != "nested"]
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Condition:
    """A filter on column `p` with what SQL and IEEE 754 say of a value: True, False, or None for unknown."""

    predicate: Predicate
    holds: Callable[[Any], bool | None]


def conditions(kind: str) -> Iterator[Condition]:
    """All comparisons of a type with its values, and their negations."""
    for condition in _plain(kind):
        yield condition
        yield Condition(~condition.predicate, lambda value, holds=condition.holds: _negated(holds(value)))


def _plain(kind: str) -> Iterator[Condition]:
    column = dw.col("p")
    values = [value for value in TYPES[kind][1] if value is not None and value == value]
    for value in values:
        for compare in SIGNS.values():
            yield Condition(compare(column, value), _known(lambda v, value=value, compare=compare: compare(v, value)))
    for chosen in (values[:2], values[-2:]):
        yield Condition(column.is_in(chosen), _known(lambda v, chosen=chosen: v in chosen))
        low, high = sorted(chosen)
        yield Condition(column.is_between(low, high), _known(lambda v, low=low, high=high: low <= v <= high))
    yield Condition(column.is_null(), lambda value: value is None)
    if kind in NAN_TYPES:
        yield Condition(column.is_nan(), _known(math.isnan))
    if kind == "string":
        for prefix in ("", "x", "a/b", "日本", "null", "plain and more"):
            yield Condition(column.starts_with(prefix), _known(lambda v, prefix=prefix: v.startswith(prefix)))


def _known(holds: Callable[[Any], bool]) -> Callable[[Any], bool | None]:
    return lambda value: None if value is None else holds(value)


def _negated(held: bool | None) -> bool | None:
    return None if held is None else not held


def check(case: Case, folder: Path, chosen: Callable[[list[Condition]], list[Condition]]) -> None:
    """Replace rows that match by themselves, so that the table must hold the same rows ever after."""
    catalog = SqlCatalog("matrix", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("ns")
    rows = case.make(catalog)
    table = catalog.load_table(f"ns.{case.name}")
    wanted = expected_rows(rows, table.schema())
    for condition in chosen(list(conditions(case.kind))):
        matching = rows.filter([condition.holds(value) is True for value in rows["p"].to_pylist()])
        writing = dw.from_arrow(matching)
        writing.write_iceberg(table, mode="overwrite", overwrite_filter=condition.predicate, allow_empty=True)
        assert canonical(table.refresh().scan().to_arrow(), table.schema()) == wanted, condition.predicate
        removed = table.current_snapshot().summary.additional_properties.get("deleted-records", "0")
        assert int(removed) >= matching.num_rows, condition.predicate
    catalog.close()


@pytest.mark.parametrize("case", [case for number, case in enumerate(CASES) if number % 8 == 3], ids=lambda c: c.name)
def test_a_sample_of_filters_replaces_what_it_says(tmp_path: Path, case: Case) -> None:
    check(case, tmp_path, lambda found: random.Random(case.name).sample(found, 6))


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_many_filters_replace_what_they_say(tmp_path: Path, case: Case) -> None:
    check(case, tmp_path, lambda found: random.Random(case.name).sample(found, min(20, len(found))))
