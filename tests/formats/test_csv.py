from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from daftwrite import ConfigError, DataError, SchemaError
from daftwrite.formats.csv import CsvFormat
from daftwrite.pipeline.align import plan_projection


def render(form: CsvFormat, *tables: pa.Table) -> bytes:
    assembler = form.assembler()
    pieces: list[Any] = []
    for table in tables:
        aligned = plan_projection(table.schema, form.schema(table.schema)).apply(table)
        pieces += assembler.append(form.encode(aligned))
    tail, summary = assembler.finish()
    assert summary.rows == sum(table.num_rows for table in tables)
    return b"".join(memoryview(piece) for piece in [*pieces, *tail])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.text(max_size=8)), st.one_of(st.none(), st.integers(-9, 9))),
        min_size=1,
    ),
    st.sampled_from([",", ";", "\t", "|", "é", "-"]),
    st.sampled_from(["needed", "all_valid"]),
    st.sampled_from(["", "NA", "\\N"]),
)
def test_text_reads_back_with_pythons_reader(
    rows: list[tuple[str | None, int | None]], delimiter: str, quoting: str, null: str
) -> None:
    table = pa.table(
        {"t": pa.array([t for t, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int64())}
    )
    data = render(CsvFormat(delimiter, quoting_style=quoting, null_text=null), table, table)
    # newline="" keeps carriage returns inside quotes.
    found = list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter))
    expected = [[null if v is None else str(v) for v in row] for row in rows]
    assert found == [["t", "n"], *expected, *expected]


def test_null_and_empty_text_are_told_apart() -> None:
    table = pa.table({"t": ["", None, "NA", " x", "a,b", 'q"'], "n": range(6)})
    assert render(CsvFormat(), table).decode() == 't,n\n"",0\n,1\nNA,2\n" x",3\n"a,b",4\n"q""",5\n'
    text = render(CsvFormat(null_text="NA"), table).decode()
    assert text == 't,n\n,0\nNA,1\n"NA",2\n" x",3\n"a,b",4\n"q""",5\n'


def test_a_null_that_would_be_an_empty_line_is_refused() -> None:
    table = pa.table({"t": ["a", None]})
    with pytest.raises(DataError, match="column 't' is the only one"):
        render(CsvFormat(), table)
    assert render(CsvFormat(null_text="NA"), table) == b"t\na\nNA\n"


def test_values_of_all_types() -> None:
    row = {
        "b": pa.array([True, None]),
        "i": pa.array([-1, None], pa.int8()),
        "f": pa.array([0.1, None]),
        "h": pa.array([1.5, None], pa.float16()),
        "d": pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)),
        "date": pa.array([dt.date(1969, 12, 31), None]),
        "time": pa.array([dt.time(1, 2, 3), None], pa.time64("us")),
        "ts": pa.array([dt.datetime(2013, 1, 1, 5), None], pa.timestamp("s")),
        "tz": pa.array([dt.datetime(2013, 1, 1, 5, tzinfo=dt.UTC), None], pa.timestamp("ms", "America/New_York")),
        "dict": pa.array(["x", None]).dictionary_encode(),
        "bytes": pa.array([b"ok", None]),
        "uuid": pa.array([uuid.UUID(int=1).bytes, None], pa.uuid()),
        "null": pa.nulls(2),
    }
    lines = render(CsvFormat(), pa.table(row)).decode().splitlines()
    assert lines[0] == ",".join(row)
    assert lines[1] == (
        "true,-1,0.1,1.5,1.50,1969-12-31,01:02:03.000000,2013-01-01 05:00:00,2013-01-01 05:00:00.000Z,x,ok,"
        "00000000-0000-0000-0000-000000000001,"
    )
    assert lines[2] == "," * 12


def test_nothing_is_quoted_when_asked_and_what_needs_it_is_refused() -> None:
    form = CsvFormat(quoting_style="none")
    assert render(form, pa.table({"t": ["a"]})) == b"t\na\n"
    with pytest.raises(DataError, match="column 't': 'a,b' needs quotes"):
        render(form, pa.table({"t": ["a,b"]}))


def test_binary_that_is_no_text_is_an_error() -> None:
    with pytest.raises(DataError, match="column 'x'"):
        render(CsvFormat(), pa.table({"x": [b"\xff\xfe"]}))


def test_compression(tmp_path: Path, flights: pa.Table) -> None:
    parts = [flights.slice(0, 5000), flights.slice(5000, 5000)]
    plain = render(CsvFormat(), *parts)
    gz = render(CsvFormat(compression="gzip"), *parts)
    zst = render(CsvFormat(compression="zstd"), *parts)
    assert gzip.decompress(gz) == plain
    assert zstandard.ZstdDecompressor().decompressobj().decompress(zst) == plain, "one frame"
    (tmp_path / "f.csv.gz").write_bytes(gz)
    (tmp_path / "f.csv.zst").write_bytes(zst)
    for name in ("f.csv.gz", "f.csv.zst"):
        assert duckdb.sql(f"select count(*) from read_csv('{tmp_path / name}')").fetchall()[0] == (10_000,)
        assert pl.read_csv(tmp_path / name, infer_schema_length=None).height == 10_000


def test_refuses_what_csv_has_no_text_for() -> None:
    schema = pa.schema(
        [
            ("l", pa.list_(pa.int8())),
            ("d", pa.duration("s")),
            ("ok", pa.int8()),
            ("s", pa.struct({"x": pa.int8()})),
        ]
    )
    with pytest.raises(SchemaError) as caught:
        CsvFormat().schema(schema)
    assert [problem.split(":")[0] for problem in caught.value.differences] == [
        "column 'l'",
        "column 'd'",
        "column 's'",
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ""},
        {"delimiter": "ab"},
        {"delimiter": '"'},
        {"quoting_style": "some"},
        {"compression": "xz"},
        {"null_text": "a,b"},
    ],
)
def test_refuses_wrong_options(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        CsvFormat(**options)  # type: ignore[arg-type]  # one of several text options
