from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daftwrite.formats.parquet import footer
from daftwrite.formats.parquet.footer import FooterError, Struct, read_struct, write_struct

INTEGERS = {footer.I16: 15, footer.I32: 31, footer.I64: 63}


def value_of(kind: int, depth: int) -> st.SearchStrategy[Any]:
    if kind in INTEGERS:
        bits = INTEGERS[kind]
        return st.integers(-(2**bits), 2**bits - 1)
    if kind == footer.BINARY:
        return st.binary(max_size=20)
    if kind in (footer.TRUE, footer.FALSE):
        return st.just(kind == footer.TRUE)
    if kind == footer.BYTE:
        return st.integers(0, 255)
    if kind == footer.DOUBLE:
        return st.binary(min_size=8, max_size=8)
    if kind in (footer.LIST, footer.SET):
        return st.sampled_from(ELEMENTS if depth else PLAIN).flatmap(
            lambda element: st.tuples(st.just(element), st.lists(boxed(element, depth - 1), max_size=20))
        )
    if kind == footer.MAP:
        return st.lists(st.tuples(value_of(footer.I32, 0), value_of(footer.BINARY, 0)), max_size=5).map(
            lambda entries: (footer.I32, footer.BINARY, entries) if entries else (0, 0, [])
        )
    return structs(depth - 1)


def boxed(kind: int, depth: int) -> st.SearchStrategy[Any]:
    return st.sampled_from([1, 2]) if kind in (footer.TRUE, footer.FALSE) else value_of(kind, depth)


PLAIN = [footer.TRUE, footer.BYTE, footer.I16, footer.I32, footer.I64, footer.DOUBLE, footer.BINARY]
ELEMENTS = [*PLAIN, footer.LIST, footer.STRUCT]
FIELDS = [*PLAIN, footer.FALSE, footer.LIST, footer.SET, footer.MAP, footer.STRUCT]


def structs(depth: int) -> st.SearchStrategy[Struct]:
    kinds = FIELDS if depth > 0 else [*PLAIN, footer.FALSE]
    field = st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind), value_of(kind, depth)))
    return st.dictionaries(st.integers(1, 300), field, max_size=8)


@settings(max_examples=200, deadline=None)
@given(structs(3))
def test_what_is_written_is_read_back(fields: Struct) -> None:
    assert read_struct(write_struct(fields)) == fields


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(FooterError):
        read_struct(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x18\xff\xff\xff\xff\x0f",  # a binary of 4 GiB
        b"\x19\xfc\xff\xff\xff\xff\x0f",  # a list of 2^32 structs
        b"\x16" + b"\xff" * 11,  # an integer without an end
        b"\x1c" * 100,  # structs in structs
        b"\x1f\x00",  # a type that isn't there
        b"\x15",  # cut off
    ],
)
def test_hostile_lengths_are_refused(data: bytes) -> None:
    with pytest.raises(FooterError):
        read_struct(data)


def test_a_file_with_a_wrong_end_is_refused() -> None:
    for data in (b"PAR1" + b"\x00" * 20, b"PAR1\xff\xff\xff\xffPAR1", b"PAR1\x00\x00\x00\x00PARE"):
        with pytest.raises(FooterError):
            footer.split_file(memoryview(data))
