"""CSV dialects, read back with DuckDB, pyarrow and Python's own reader."""

from __future__ import annotations

import csv
import datetime as dt
import io
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daftwrite as dw
from daftwrite.formats.csv import CsvFormat

TEXTS = pa.table(
    {"a": ["plain", "it's", 'say "x"', "semi;colon", "back\\slash", "two\nlines", "", None], "n": range(8)}
)


def text(data: pa.Table, **options: Any) -> str:
    made = CsvFormat(**options)
    assembler = made.assembler()
    data = data.cast(made.schema(data.schema))
    pieces = [*assembler.append(made.encode(data)), *assembler.finish()[0]]
    return b"".join(memoryview(piece) for piece in pieces).decode("utf-8")


@pytest.mark.parametrize(
    "dialect",
    [
        {},
        {"delimiter": ";"},
        {"delimiter": "\t", "quote_char": "'"},
        {"quote_char": "'", "escape_char": "\\"},
        {"escape_char": "\\", "delimiter": "|"},
        {"quoting_style": "all_valid", "null_text": "NULL"},
    ],
)
def test_duckdb_reads_every_dialect(tmp_path: Path, dialect: dict[str, Any]) -> None:
    dw.from_arrow(TEXTS).write_csv(tmp_path / "x.csv", **dialect)
    read = duckdb.read_csv(
        str(tmp_path / "x.csv"),
        sep=dialect.get("delimiter", ","),
        quotechar=dialect.get("quote_char", '"'),
        escapechar=dialect.get("escape_char", dialect.get("quote_char", '"')),
        na_values=dialect.get("null_text", ""),
        allow_quoted_nulls=False,
        header=True,
    )
    assert read.fetchall() == [tuple(row.values()) for row in TEXTS.to_pylist()]


def test_pyarrow_reads_escapes_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    dw.from_arrow(TEXTS).write_csv(path, quote_char="'", escape_char="\\", delimiter=";")
    parse = pyarrow.csv.ParseOptions(
        delimiter=";", quote_char="'", double_quote=False, escape_char="\\", newlines_in_values=True
    )
    convert = pyarrow.csv.ConvertOptions(strings_can_be_null=True, quoted_strings_can_be_null=False)
    assert pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert).to_pydict() == TEXTS.to_pydict()


@settings(max_examples=200, deadline=None)
@given(
    values=st.lists(
        st.tuples(*[st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))] * 2),
        min_size=1,
        max_size=5,
    ),
    delimiter=st.sampled_from([",", ";", "\t", "|", " ", "é"]),
    quote=st.sampled_from(['"', "'", "`"]),
    escape=st.sampled_from([None, "\\", "^"]),
    ending=st.sampled_from(["\n", "\r\n"]),
)
def test_python_reads_any_text_in_any_dialect(
    values: list[tuple[str, str]], delimiter: str, quote: str, escape: str | None, ending: str
) -> None:
    data = pa.table({"a": [a for a, _ in values], "b": [b for _, b in values]})
    made = text(
        data, delimiter=delimiter, quote_char=quote, escape_char=escape, line_terminator=ending, include_header=False
    )
    assert made.endswith(ending)
    reader = csv.reader(
        io.StringIO(made, newline=""),
        delimiter=delimiter,
        quotechar=quote,
        escapechar=escape,
        doublequote=escape is None,
        strict=True,
    )
    assert list(reader) == [list(row) for row in values]


def test_line_ends(tmp_path: Path) -> None:
    assert text(pa.table({"a": [1, 2]}), line_terminator="\r\n") == "a\r\n1\r\n2\r\n"


def test_the_byte_order_mark_stands_at_the_start_of_each_file(tmp_path: Path) -> None:
    data = pa.table({"k": ["x", "y"], "a": ["é", "ü"]})
    result = dw.from_arrow(data).write_csv(tmp_path / "out", include_bom=True, partition_by=["k"])
    found = [Path(file.path).read_bytes() for file in result.files]
    assert found == ["\ufeffa\né\n".encode(), "\ufeffa\nü\n".encode()]
    assert pyarrow.csv.read_csv(result.files[0].path).to_pydict() == {"a": ["é"]}
    assert text(pa.table({"a": [1]}), include_bom=True, include_header=False) == "\ufeff1\n"


def test_columns_that_are_always_quoted() -> None:
    data = pa.table({"zip": ["01234", None], "n": [1, 2], "d": [dt.date(2026, 1, 2), None]})
    assert text(data, force_quote=("zip", "d")) == 'zip,n,d\n"01234",1,"2026-01-02"\n,2,\n'


def test_a_quoted_column_that_is_missing_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(dw.SchemaError, match="column 'zap' is not in the source, and force_quote names it"):
        dw.from_arrow(TEXTS).write_csv(tmp_path / "x.csv", force_quote=["zap"])


MOMENTS = [
    dt.datetime(2026, 2, 3, 4, 5, 6, 789_012),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1, 1, 1),
    dt.datetime(9999, 12, 31, 23, 59, 59),
    None,
]


@pytest.mark.parametrize("unit", ["us", "ns", "s"])
@pytest.mark.parametrize("pattern", ["%d/%m/%Y %H:%M:%S", "%Y%m%d%H%M%S%f", "%f|%S", "%Y-%m-%dT%H:%M:%S.%fZ", "%%f %j"])
def test_timestamps_by_a_pattern_are_as_python_makes_them(unit: str, pattern: str) -> None:
    moments = [m for m in MOMENTS if m is None or unit != "ns" or 1700 < m.year < 2200]
    if unit == "s":
        moments = [None if m is None else m.replace(microsecond=0) for m in moments]
    data = pa.table({"t": pa.array(moments, pa.timestamp(unit)), "n": range(len(moments))})
    lines = text(data, timestamp_format=pattern, delimiter=";", include_header=False).splitlines()
    # Python leaves zeros of early years out.
    wanted = ["" if m is None else m.strftime(pattern.replace("%Y", f"{m.year:04d}")) for m in moments]
    assert [line.rsplit(";", 1)[0].strip('"') for line in lines] == wanted


def test_timestamps_of_a_zone_are_in_utc() -> None:
    moment = dt.datetime(2026, 7, 1, 12, tzinfo=dt.UTC)
    data = pa.table({"t": pa.array([moment], pa.timestamp("us", "Europe/Berlin"))})
    assert text(data, timestamp_format="%Y-%m-%d %H:%M", include_header=False) == "2026-07-01 12:00\n"


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates_by_a_pattern(tmp_path: Path, kind: pa.DataType) -> None:
    days = [dt.date(2026, 2, 3), dt.date(1969, 12, 31), None]
    path = tmp_path / "x.csv"
    dw.from_arrow(pa.table({"d": pa.array(days, kind), "n": range(3)})).write_csv(path, date_format="%d.%m.%Y")
    assert path.read_text() == "d,n\n03.02.2026,0\n31.12.1969,1\n,2\n"
    assert duckdb.read_csv(str(path), date_format="%d.%m.%Y").fetchall() == [(day, i) for i, day in enumerate(days)]


def test_a_pattern_with_the_delimiter_is_quoted() -> None:
    data = pa.table({"d": [dt.date(2026, 2, 3)], "n": [1]})
    assert text(data, date_format="%d,%m,%Y", include_header=False) == '"03,02,2026",1\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quote_char": ","}, "delimiter must differ from quote_char"),
        ({"escape_char": ","}, "delimiter must differ"),
        ({"quote_char": "''"}, "quote_char must be one character"),
        ({"escape_char": "\n"}, "escape_char must be one character"),
        ({"line_terminator": "\r"}, "line_terminator must be"),
        ({"date_format": "%Q"}, "date_format has '%Q'"),
        ({"timestamp_format": "%"}, "timestamp_format has '%'"),
        ({"timestamp_format": ""}, "timestamp_format must be a pattern"),
        ({"force_quote": ("a",), "quoting_style": "none"}, "force_quote"),
        ({"force_quote": "a"}, "force_quote"),
        ({"include_bom": "yes"}, "include_bom"),
        ({"include_header": 1}, "include_header"),
    ],
)
def test_wrong_dialects_are_refused_by_name(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(dw.ConfigError, match=message):
        dw.from_arrow(TEXTS).write_csv(tmp_path / "x.csv", **options)
    assert list(tmp_path.iterdir()) == []
