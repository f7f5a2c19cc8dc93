from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daftwrite import ConfigError, SchemaError
from daftwrite.formats.base import FileSummary
from daftwrite.formats.parquet import ParquetFormat


def assemble(path: Path, form: ParquetFormat, tables: list[pa.Table]) -> FileSummary:
    assembler = form.assembler()
    pieces: list[pa.Buffer] = []
    for table in tables:
        pieces += assembler.append(form.encode(table))
    tail, summary = assembler.finish()
    path.write_bytes(b"".join(memoryview(piece) for piece in [*pieces, *tail]))
    return summary


def test_row_groups_of_several_encodes_read_as_one_file(tmp_path: Path, flights: pa.Table) -> None:
    path = tmp_path / "f.parquet"
    table = flights.slice(0, 90_000)
    cuts = [0, 1, 40_000, 40_001, 90_000]
    parts = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    summary = assemble(path, ParquetFormat(), parts)
    assert pq.read_table(path).equals(table)
    assert pl.read_parquet(path).equals(pl.from_arrow(table))
    query = f"select count(*), sum(distance), count(dep_time), min(time_hour) from '{path}'"
    assert duckdb.sql(query).fetchall() == duckdb.sql(query.replace(f"'{path}'", '"table"')).fetchall()
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(i).num_rows for i in range(4)] == [1, 39_999, 1, 49_999]
    assert summary.rows == 90_000
    for i, offset in enumerate(summary.split_offsets):
        column = metadata.row_group(i).column(0)
        assert offset == (column.dictionary_page_offset or column.data_page_offset)
    statistics = summary.statistics["dep_time"]
    assert (statistics.lower, statistics.upper) == (1, 2400)
    assert statistics.nulls == table["dep_time"].null_count


VALUES = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float16(): st.floats(width=16, allow_nan=False),
    pa.string(): st.text(max_size=8),
    pa.binary(): st.binary(max_size=8),
    pa.bool_(): st.booleans(),
    pa.decimal128(20, 4): st.decimals(-(10**12), 10**12, places=4),
    pa.date32(): st.dates(),
    pa.timestamp("us", "UTC"): st.integers(-(2**50), 2**50),
    pa.list_(pa.float32()): st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=3),
    pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}): st.fixed_dictionaries(
        {"x": st.integers(-9, 9), "y": st.one_of(st.none(), st.lists(st.text(max_size=3), max_size=2))}
    ),
    pa.map_(pa.string(), pa.int32()): st.lists(st.tuples(st.text(max_size=3), st.integers(-9, 9)), max_size=3),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, list[int]]:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES, key=str)), min_size=1, max_size=4))
    rows = draw(st.integers(1, 25))
    columns = {
        f"c{i}": pa.array([draw(st.one_of(st.none(), VALUES[kind])) for _ in range(rows)], kind)
        for i, kind in enumerate(kinds)
    }
    cuts = sorted({0, rows, *draw(st.lists(st.integers(0, rows), max_size=3))})
    return pa.table(columns), cuts


def same(a: Any, b: Any) -> bool:
    return repr(a) == repr(b)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_any_table_reads_back_equal(tmp_path_factory: pytest.TempPathFactory, made: tuple[pa.Table, list[int]]) -> None:
    table, cuts = made
    path = tmp_path_factory.mktemp("any") / "f.parquet"
    form = ParquetFormat()
    assert form.schema(table.schema).names == table.schema.names
    assemble(path, form, [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)])
    back = pq.read_table(path)
    assert same(back.to_pylist(), table.to_pylist())
    assert pl.read_parquet(path).height == table.num_rows
    counted = duckdb.sql(f"select {', '.join(f'count({n})' for n in table.schema.names)} from '{path}'").fetchall()[0]
    assert counted == tuple(table.num_rows - column.null_count for column in table.columns)


def test_bounds_go_when_a_row_group_has_none(tmp_path: Path) -> None:
    # parquet-cpp leaves out bounds over 4096 bytes; those of the other row groups would hide these rows.
    parts = [pa.table({"s": [value]}) for value in ("m", "a" * 5000, "z" * 5000)]
    summary = assemble(tmp_path / "f.parquet", ParquetFormat(), parts)
    assert (summary.statistics["s"].lower, summary.statistics["s"].upper) == (None, None)
    parts = [pa.table({"s": pa.array([value], pa.string())}) for value in ("m", None, "k")]
    summary = assemble(tmp_path / "g.parquet", ParquetFormat(), parts)
    assert (summary.statistics["s"].lower, summary.statistics["s"].upper) == ("k", "m")


def test_nans_are_counted_and_stay_out_of_bounds(tmp_path: Path) -> None:
    kind = pa.struct({"f": pa.float32(), "l": pa.list_(pa.float64())})
    table = pa.table(
        {
            "d": [1.0, math.nan, -2.0, None],
            "n": [math.nan] * 4,
            "s": pa.array(
                [{"f": math.nan, "l": [math.nan, 1.0]}, None, {"f": 2.0, "l": None}, {"f": None, "l": []}],
                kind,
            ),
        }
    )
    statistics = assemble(tmp_path / "f.parquet", ParquetFormat(), [table, table]).statistics
    found = {path: (s.nans, s.lower, s.upper) for path, s in statistics.items()}
    assert found == {
        "d": (2, -2.0, 1.0),
        "n": (8, None, None),
        "s.f": (2, 2.0, 2.0),
        "s.l.list.element": (2, 1.0, 1.0),
    }


def test_decimals_are_stored_as_integers_where_they_fit(tmp_path: Path) -> None:
    table = pa.table(
        {
            "a": pa.array([1], pa.decimal128(9, 2)),
            "b": pa.array([1], pa.decimal128(18, 2)),
            "c": pa.array([-5], pa.decimal128(19, 2)),
        }
    )
    summary = assemble(tmp_path / "f.parquet", ParquetFormat(), [table])
    schema = pq.ParquetFile(tmp_path / "f.parquet").schema
    assert [schema.column(i).physical_type for i in range(3)] == ["INT32", "INT64", "FIXED_LEN_BYTE_ARRAY"]
    assert summary.statistics["c"].lower == -500


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "brotli", "lz4", "none"])
def test_codecs(tmp_path: Path, codec: str) -> None:
    table = pa.table({"a": list(range(1000))})
    assemble(tmp_path / "f.parquet", ParquetFormat(compression=codec), [table])
    expected = "UNCOMPRESSED" if codec == "none" else codec.upper()
    assert pq.read_metadata(tmp_path / "f.parquet").row_group(0).column(0).compression == expected
    assert pl.read_parquet(tmp_path / "f.parquet")["a"].sum() == 499_500


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"compression": "lzo"}, "compression must be one of .* not 'lzo'"),
        (
            {"compression": "zstd", "compression_level": 23},
            "compression_level for zstd must be from .* not 23",
        ),
        ({"compression": "snappy", "compression_level": 1}, "compression_level has no meaning"),
    ],
)
def test_refuses_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ParquetFormat(**options)


def test_refuses_types_by_name() -> None:
    schema = pa.schema(
        [
            ("i", pa.month_day_nano_interval()),
            ("u", pa.sparse_union([pa.field("a", pa.int8())])),
            ("s", pa.struct([])),
            ("t", pa.fixed_shape_tensor(pa.int8(), (2,))),
        ]
    )
    with pytest.raises(SchemaError) as caught:
        ParquetFormat().schema(schema)
    assert [problem[:11] for problem in caught.value.differences] == [f"column '{name}':" for name in "iust"]


def test_seconds_become_milliseconds(tmp_path: Path) -> None:
    schema = ParquetFormat().schema(pa.schema([("t", pa.timestamp("s", "Asia/Tokyo")), ("u", pa.time32("s"))]))
    assert schema.types == [pa.timestamp("ms", "Asia/Tokyo"), pa.time32("ms")]


def test_a_file_without_rows(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([], pa.int64())})
    summary = assemble(tmp_path / "f.parquet", ParquetFormat(), [table])
    assert pq.read_table(tmp_path / "f.parquet").schema == table.schema
    assert (summary.rows, summary.split_offsets) == (0, ())
