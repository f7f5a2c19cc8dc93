"""Faults of the readers themselves, each seen on tables that other writers made, too."""

from __future__ import annotations

from tests.interop.matrix import NAN_TYPES, Case, Filter

__all__ = ["known_fault"]


def known_fault(reader: str, case: Case, condition: Filter | None) -> str | None:
    """Why a reader is known to answer a question wrongly, or None."""
    operator = None if condition is None else condition.op
    if reader == "pyiceberg":
        if case.kind == "nested":
            return "a null list or map of structs is read as an empty one"
        if case.kind == "uuid" and operator == "=" and condition is not None and condition.column == "p":
            return "a UUID as a partition value is compared with bytes, and never equal"
        if case.kind in NAN_TYPES and operator == "nan":
            return "Arrow drops NaN where all other values of a row group are equal"
    return None
