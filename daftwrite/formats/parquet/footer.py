"""Thrift's compact protocol, read and written without a schema.

A struct is a dict from field id to `(type, value)`, in the order of the wire, so that what isn't known passes through
unchanged. See the Thrift compact protocol specification, and `parquet.thrift` for the field ids.
"""

from __future__ import annotations

import struct
from typing import Any

from daftwrite.errors import DaftwriteError

__all__ = [
    "BINARY",
    "I16",
    "I32",
    "I64",
    "LIST",
    "STRUCT",
    "FooterError",
    "Struct",
    "read_struct",
    "write_struct",
]

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Struct = dict[int, tuple[int, Any]]

_MAX_DEPTH = 32


class FooterError(DaftwriteError, ValueError):
    """Raised when a Parquet footer isn't well-formed Thrift."""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def take(self, count: int) -> bytes:
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise FooterError(f"length {count} at byte {self.position} reaches beyond the footer")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        result = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
        raise FooterError(f"integer longer than ten bytes at byte {self.position}")

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def count(self, size: int) -> int:
        if size > len(self.data) - self.position:
            raise FooterError(f"{size} elements at byte {self.position} don't fit the footer")
        return size

    def value(self, kind: int, depth: int) -> Any:
        if kind in (I16, I32, I64):
            return self.zigzag()
        if kind == BINARY:
            return self.take(self.varint())
        if kind == STRUCT:
            return self.struct(depth + 1)
        if kind in (LIST, SET):
            return self.sequence(depth + 1)
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind == BYTE:
            return self.byte()
        if kind == DOUBLE:
            return self.take(8)
        if kind == MAP:
            return self.map(depth + 1)
        raise FooterError(f"unknown type {kind} at byte {self.position}")

    def sequence(self, depth: int) -> tuple[int, list[Any]]:
        self._check(depth)
        head = self.byte()
        kind, size = head & 0x0F, head >> 4
        if size == 15:
            size = self.varint()
        self.count(size)
        if kind in (TRUE, FALSE):
            return kind, [self.byte() for _ in range(size)]
        return kind, [self.value(kind, depth) for _ in range(size)]

    def map(self, depth: int) -> tuple[int, int, list[tuple[Any, Any]]]:
        self._check(depth)
        size = self.count(self.varint())
        if not size:
            return 0, 0, []
        head = self.byte()
        keys, values = head >> 4, head & 0x0F
        return keys, values, [(self._boxed(keys, depth), self._boxed(values, depth)) for _ in range(size)]

    def _boxed(self, kind: int, depth: int) -> Any:
        return self.byte() if kind in (TRUE, FALSE) else self.value(kind, depth)

    def struct(self, depth: int) -> Struct:
        self._check(depth)
        fields: Struct = {}
        last = 0
        while head := self.byte():
            delta, kind = head >> 4, head & 0x0F
            last = last + delta if delta else self.zigzag()
            fields[last] = (kind, self.value(kind, depth))
        return fields

    def _check(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise FooterError(f"nesting deeper than {_MAX_DEPTH} at byte {self.position}")


def read_struct(data: bytes) -> Struct:
    """Read one struct from the start of `data`.

    Raises:
        FooterError: when lengths, types or nesting are out of bounds.
    """
    return _Reader(data).struct(0)


def _varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _zigzag(out: bytearray, value: int) -> None:
    _varint(out, (value << 1) ^ (value >> 63) if value < 0 else value << 1)


def _value(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _zigzag(out, value)
    elif kind == BINARY:
        _varint(out, len(value))
        out += value
    elif kind == STRUCT:
        _struct(out, value)
    elif kind in (LIST, SET):
        _list(out, *value)
    elif kind == BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += value
    elif kind == MAP:
        _map(out, *value)


def _list(out: bytearray, kind: int, values: list[Any]) -> None:
    if len(values) < 15:
        out.append(len(values) << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _varint(out, len(values))
    for value in values:
        _boxed(out, kind, value)


def _map(out: bytearray, keys: int, values: int, entries: list[tuple[Any, Any]]) -> None:
    _varint(out, len(entries))
    if entries:
        out.append(keys << 4 | values)
    for key, value in entries:
        _boxed(out, keys, key)
        _boxed(out, values, value)


def _boxed(out: bytearray, kind: int, value: Any) -> None:
    if kind in (TRUE, FALSE):
        out.append(value)
    else:
        _value(out, kind, value)


def _struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (kind, value) in fields.items():
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        if 0 < number - last <= 15:
            out.append((number - last) << 4 | kind)
        else:
            out.append(kind)
            _zigzag(out, number)
        last = number
        _value(out, kind, value)
    out.append(0)


def write_struct(fields: Struct) -> bytes:
    """Write a struct the way `read_struct` reads it."""
    out = bytearray()
    _struct(out, fields)
    return bytes(out)


def split_file(data: memoryview) -> tuple[int, Struct]:
    """Find the footer of a Parquet file held in memory.

    Returns:
        The offset where the footer starts, and the `FileMetaData` in it.
    """
    (length,) = struct.unpack("<I", data[-8:-4])
    start = len(data) - 8 - length
    if start < 4 or bytes(data[-4:]) != b"PAR1":
        raise FooterError("not a Parquet file: its footer length or magic bytes are wrong")
    return start, read_struct(bytes(data[start:-8]))
