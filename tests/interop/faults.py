"""Faults of the readers themselves: questions that each is known to answer wrongly, whoever wrote the table."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.interop.matrix import NAN_TYPES, Case, Filter

__all__ = ["known_fault"]

EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True)
class _Question:
    version: str
    kind: str
    layout: str
    condition: Filter | None

    def compares(self, operators: str = "=") -> bool:
        """Whether the partition column is compared with a value."""
        condition = self.condition
        return condition is not None and condition.column == "p" and condition.op in operators.split()

    @property
    def value(self) -> Any:
        return None if self.condition is None else self.condition.value

    @property
    def before_epoch(self) -> bool:
        return isinstance(self.value, dt.datetime) and self.value.replace(tzinfo=None) < EPOCH

    @property
    def infinite(self) -> bool:
        return isinstance(self.value, float) and math.isinf(self.value)


def known_fault(reader: str, case: Case, condition: Filter | None) -> str | None:
    """Why a reader is known to answer a question wrongly, or None."""
    version, rest = case.name.split("_", 1)
    layout = rest.removeprefix(case.kind).strip("_")
    readers = {"pyiceberg": _pyiceberg, "polars": _polars, "duckdb": _duckdb, "datafusion": _datafusion, "java": _java}
    ask = readers.get(reader)
    return None if ask is None else ask(_Question(version, case.kind, layout, condition))


def _pyiceberg(question: _Question) -> str | None:
    if question.kind == "nested":
        return "a null list or map of structs is read as an empty one"
    if question.kind == "uuid" and question.compares():
        return "a UUID as a partition value is compared with bytes, and never equal"
    if question.kind in NAN_TYPES and question.compares("nan"):
        return "Arrow drops NaN where all other values of a row group are equal"
    if question.kind == "float" and question.compares("= <") and question.infinite:
        return "infinity is taken to be beyond what a float can hold"
    return _polars(question)


def _polars(question: _Question) -> str | None:
    # Polars plans its scans with pyiceberg.
    if question.kind == "double" and question.layout in ("identity", "evolved") and question.compares("= <"):
        return "partition values of double are narrowed to float while a manifest is decoded"
    return None


def _duckdb(question: _Question) -> str | None:
    if question.layout in ("day", "month") and question.compares() and question.before_epoch:
        return "day and month of times before 1970 are rounded towards zero (duckdb-iceberg 1361)"
    if question.kind == "uuid" and question.layout in ("bucket_4", "evolved") and question.compares():
        return "UUIDs are hashed into another bucket than the specification's"
    negative = isinstance(question.value, Decimal) and question.value < 0
    if question.layout in ("truncate_50", "evolved") and negative and question.compares():
        return "negative decimals are truncated towards zero"
    return None


def _datafusion(question: _Question) -> str | None:
    if question.version == "v1" and question.kind in ("boolean", "int", "float") and question.layout == "evolved":
        return "two void fields of one source, which dropped v1 partition fields are, are refused as redundant"
    if question.kind == "uuid" and question.layout in ("identity", "evolved"):
        return "a UUID as a partition value can't be decoded"
    return None


def _java(question: _Question) -> str | None:
    if question.kind == "uuid" and question.compares():
        return "bounds of UUIDs are compared as two signed numbers (until Iceberg 1.11)"
    if question.kind == "fixed" and question.layout in ("identity", "evolved"):
        return "fixed partition values are written and read with a length before them, which Avro does not know"
    return None
