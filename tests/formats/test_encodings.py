from __future__ import annotations

import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from daftwrite.formats.parquet import ParquetFormat
from daftwrite.formats.parquet.encodings import dictionary_columns


def test_dictionaries_go_to_columns_that_repeat() -> None:
    rows = 50_000
    chance = np.random.default_rng(3)
    table = pa.table(
        {
            "unique": [f"text {i}" for i in range(rows)],
            "few": [f"text {i % 7}" for i in range(rows)],
            "clustered": np.arange(rows) // 4,
            "random": chance.random(rows),
            "nulls": pa.nulls(rows, pa.int64()),
            "flag": pa.array([True, False] * (rows // 2)),
            "uuid": pa.array([uuid.UUID(int=i).bytes for i in range(rows)], pa.uuid()),
            "nested": pa.array([{"a": [1], "m": [("k", 1)]}] * rows, pa.struct({"a": pa.list_(pa.int8()), "m": pa.map_(pa.string(), pa.int8())})),
        }
    )  # fmt: skip
    nested = ["nested.a.list.element", "nested.m.key_value.key", "nested.m.key_value.value"]
    assert dictionary_columns(table) == ["few", "clustered", "nulls", *nested]
    encoded = ParquetFormat().encode(table)
    assembler = ParquetFormat().assembler()
    pieces = [*assembler.append(encoded), *assembler.finish()[0]]
    metadata = pq.read_metadata(pa.BufferReader(b"".join(memoryview(piece) for piece in pieces)))
    with_dictionary = {
        metadata.row_group(0).column(i).path_in_schema
        for i in range(metadata.num_columns)
        if metadata.row_group(0).column(i).has_dictionary_page
    }
    assert with_dictionary == {"few", "clustered", "nulls", *nested}


def test_short_row_groups_get_dictionaries() -> None:
    assert dictionary_columns(pa.table({"a": [1], "b": [None], "c": [True], "u": pa.array([None], pa.uuid())})) == list(
        "abcu"
    )
    assert dictionary_columns(pa.table({"a": pa.array([], pa.int64())})) == ["a"]
    long = pa.table({"n": pa.nulls(20_000), "a": pa.array([1] * 20_000)})
    assert dictionary_columns(long) == ["a"]
