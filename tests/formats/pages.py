"""Page headers of a Parquet file, read with Apache Thrift's own protocol, apart from any Parquet library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3


@dataclass(frozen=True)
class Page:
    """One page as its header tells.

    Attributes:
        kind: "data v1", "data v2" or "dictionary".
        values: number of values, nulls too.
        nbytes: bytes before compression.
    """

    kind: str
    values: int
    nbytes: int


def pages(path: str | Path, column: str) -> list[Page]:
    """All pages of a column, in the order of the file."""
    data = Path(path).read_bytes()
    metadata = pq.read_metadata(path)
    found: list[Page] = []
    for group in range(metadata.num_row_groups):
        for index in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(index)
            if chunk.path_in_schema == column:
                starts = [chunk.data_page_offset]
                if chunk.has_dictionary_page:
                    starts.append(chunk.dictionary_page_offset)
                start = min(starts)
                found += _chunk_pages(data[start : start + chunk.total_compressed_size])
    return found


def _chunk_pages(data: bytes) -> list[Page]:
    found = []
    while data:
        buffer = TMemoryBuffer(data)
        header = _struct(TCompactProtocol(buffer))
        body = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}[header[1]]
        kind = {_DATA: "data v1", _DICTIONARY: "dictionary", _DATA_V2: "data v2"}[header[1]]
        found.append(Page(kind, header[body][1], header[2]))
        data = data[buffer.cstringio_buf.tell() + header[3] :]
    return found


def _struct(protocol: TCompactProtocol) -> dict[int, Any]:
    protocol.readStructBegin()
    fields = {}
    while True:
        _, kind, number = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        fields[number] = _value(protocol, kind)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return fields


def _value(protocol: TCompactProtocol, kind: int) -> Any:
    if kind == TType.STRUCT:
        return _struct(protocol)
    if kind == TType.LIST:
        inner, size = protocol.readListBegin()
        return [_value(protocol, inner) for _ in range(size)]
    read = {
        TType.BOOL: protocol.readBool,
        TType.BYTE: protocol.readByte,
        TType.I16: protocol.readI16,
        TType.I32: protocol.readI32,
        TType.I64: protocol.readI64,
        TType.DOUBLE: protocol.readDouble,
        TType.STRING: protocol.readBinary,
    }
    return read[kind]()
