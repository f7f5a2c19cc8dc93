"""CSV: text made in parallel, compressed in order."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import ConfigError, DataError, SchemaError
from daftwrite.flags import check_flags
from daftwrite.formats.base import EncodedRowGroup, FileSummary
from daftwrite.formats.csv_times import check_pattern, format_times
from daftwrite.pipeline.types import is_list, is_opaque, logical_type

__all__ = ["CODECS", "QUOTING_STYLES", "CsvFormat"]

CODECS = ("none", "gzip", "zstd")
QUOTING_STYLES = ("needed", "all_valid", "none")

pat = pa.types
_WIDEST_TEXT = 26
_BOM = b"\xef\xbb\xbf"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_897


@dataclass(frozen=True)
class CsvFormat:
    r"""CSV with its options, under pyarrow's names.

    Values are written as Arrow casts them to text: ISO dates and times (a zone's instants in UTC, with `Z`), `true` and
    `false`, decimals with all their digits, floats with as many as are needed to read them back. Binary values must be
    UTF-8. Nested types and durations are refused.

    Args:
        delimiter: one character between values.
        include_header: whether the column names are the first line of each file.
        quoting_style: `"needed"` quotes values with the delimiter, a quote, a line end or outer spaces in them, and
            text that would read as a null; `"all_valid"` quotes all but nulls; `"none"` quotes nothing and refuses
            values that would need it.
        null_text: what stands for a null.
        compression: `"none"` (default), `"gzip"` (a member for each row group) or `"zstd"` (one frame).
        quote_char: one character around values.
        escape_char: one character before a quote inside a value; by default the quote is doubled.
        force_quote: columns whose values are quoted always, nulls excepted.
        date_format: a pattern for dates, such as `"%d.%m.%Y"`. Default: ISO 8601.
        timestamp_format: a pattern for timestamps. Default: ISO 8601 with a space.
        line_terminator: `"\n"` (default) or `"\r\n"`.
        include_bom: whether each file begins with UTF-8's byte order mark.
    """

    delimiter: str = ","
    include_header: bool = True
    quoting_style: str = "needed"
    null_text: str = ""
    compression: str = "none"
    quote_char: str = '"'
    escape_char: str | None = None
    force_quote: tuple[str, ...] = ()
    date_format: str | None = None
    timestamp_format: str | None = None
    line_terminator: str = "\n"
    include_bom: bool = False

    name: ClassVar[str] = "csv"
    extensions: ClassVar[tuple[str, ...]] = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst")

    def __post_init__(self) -> None:
        check_flags(self, "include_header", "include_bom")
        for name in ("delimiter", "quote_char", "escape_char"):
            value = getattr(self, name)
            if name == "escape_char" and value is None:
                continue
            if not isinstance(value, str) or len(value) != 1 or value in "\r\n\0":
                raise ConfigError(f"{name} must be one character other than a line end, not {value!r}")
        if self.delimiter in (self.quote_char, self.escape_char):
            raise ConfigError(f"delimiter must differ from quote_char and escape_char, {self.delimiter!r} doesn't")
        if self.line_terminator not in ("\n", "\r\n"):
            raise ConfigError(f"line_terminator must be '\\n' or '\\r\\n', not {self.line_terminator!r}")
        check_pattern(self.date_format, "date_format")
        check_pattern(self.timestamp_format, "timestamp_format")
        if self.force_quote and self.quoting_style == "none":
            raise ConfigError("force_quote quotes columns, and quoting_style='none' quotes nothing")
        if self.quoting_style not in QUOTING_STYLES:
            raise ConfigError(f"quoting_style must be one of {', '.join(QUOTING_STYLES)}, not {self.quoting_style!r}")
        if self.compression not in CODECS:
            raise ConfigError(f"compression must be one of {', '.join(CODECS)} for csv, not {self.compression!r}")
        if re.search(f"[\r\n{re.escape(self.quote_char + self.delimiter)}]", self.null_text):
            raise ConfigError(f"null_text must not hold a quote, delimiter or line end, as {self.null_text!r} does")

    @property
    def extension(self) -> str:
        """The end of file names."""
        return {"none": "csv", "gzip": "csv.gz", "zstd": "csv.zst"}[self.compression]

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The types that are made into text; see `Format.schema`."""
        problems = [
            f"column '{name}' is not in the source, and force_quote names it"
            for name in self.force_quote
            if name not in source.names
        ]
        fields = []
        for field in source:
            kind = logical_type(field.type)
            if is_list(kind) or pat.is_nested(kind):
                problems.append(f"column '{field.name}': {field.type} is nested, CSV is flat")
            elif pat.is_duration(kind) or pat.is_interval(kind) or is_opaque(kind):
                problems.append(f"column '{field.name}': {field.type} has no CSV text")
            elif pat.is_float16(kind):
                kind = pa.float32()
            elif pat.is_timestamp(kind) and kind.tz is not None:
                kind = pa.timestamp(kind.unit, "UTC")
            fields.append(pa.field(field.name, kind, field.nullable))
        if problems:
            raise SchemaError("the source has types that CSV can't store", problems)
        return pa.schema(fields)

    def encoded_bound(self, schema: pa.Schema, rows: int, nbytes: int) -> int:
        """The text of each value, and of whole lines while they are joined; see `Format.encoded_bound`."""
        text = 2 * nbytes + rows * sum(_WIDEST_TEXT + len(self.null_text) for _ in schema)
        return 3 * text

    def encode(self, table: pa.Table) -> EncodedRowGroup:
        """Turn rows into lines; see `Format.encode`."""
        header = self._header(table.schema) if self.include_header else b""
        if self.include_bom:
            header = _BOM + header
        body = [self._lines(batch) for batch in table.to_batches() if batch.num_rows]
        if self.compression == "gzip":
            codec = pa.Codec("gzip")
            # As a buffer, pyarrow gives the whole space it reserved, zeros behind the member included.
            body = [pa.py_buffer(codec.compress(piece, asbytes=True)) for piece in body]
            header = codec.compress(header, asbytes=True) if header else b""
        return EncodedRowGroup(table.num_rows, body, header)

    def assembler(self) -> CsvAssembler:
        """A fresh assembler for one file."""
        return CsvAssembler(self.compression)

    def _header(self, schema: pa.Schema) -> bytes:
        names = pa.array(schema.names, pa.large_string())
        quoted = self._quote(names) if self.quoting_style == "all_valid" else self._quote_needed(names, "header")
        return (self.delimiter.join(quoted.to_pylist()) + self.line_terminator).encode()

    def _lines(self, batch: pa.RecordBatch) -> pa.Buffer:
        alone = batch.num_columns == 1
        texts = [
            self._text(column, field.name, alone) for field, column in zip(batch.schema, batch.columns, strict=True)
        ]
        if alone and not self.null_text and batch.column(0).null_count:
            raise DataError(
                f"column '{batch.schema.names[0]}' is the only one, so a null in it would be an empty line, which "
                "readers skip; set null_text"
            )
        rows = pc.binary_join_element_wise(*texts, pa.scalar(self.delimiter, pa.large_string()))
        end = pa.scalar(self.line_terminator, pa.large_string())
        ended = pc.binary_join_element_wise(rows, pa.scalar("", pa.large_string()), end)
        return _contents(ended)

    def _text(self, column: pa.Array, name: str, alone: bool) -> pa.Array:
        pattern = self._pattern(column.type)
        text = _cast_to_text(column, name, pattern)
        if self.quoting_style == "all_valid" or name in self.force_quote:
            text = self._quote(text)
        elif not self._is_plain(column.type, pattern) or (
            self.null_text and pc.any(pc.equal(text, self.null_text)).as_py()
        ):
            text = self._quote_needed(text, name, alone)
        return pc.fill_null(text, pa.scalar(self.null_text, pa.large_string())) if text.null_count else text

    def _quote_needed(self, text: pa.Array, name: str, alone: bool = False) -> pa.Array:
        marks = re.escape(self.quote_char + self.delimiter + (self.escape_char or ""))
        special = f"[\r\n{marks}]|^\\s|\\s$"
        needs = pc.or_(pc.match_substring_regex(text, special), pc.equal(text, self.null_text))
        if alone:
            # An empty line is skipped by readers.
            needs = pc.or_(needs, pc.equal(text, ""))
        if not pc.any(needs).as_py():
            return text
        if self.quoting_style == "none":
            value = text.filter(needs)[0].as_py()
            raise DataError(f"column '{name}': {value!r} needs quotes, and quoting_style is 'none'")
        return pc.if_else(needs, self._quote(text), text)

    def _quote(self, text: pa.Array) -> pa.Array:
        mark = pa.scalar(self.quote_char, pa.large_string())
        escape = self.escape_char or self.quote_char
        if escape != self.quote_char:
            text = pc.replace_substring(text, escape, escape + escape)
        escaped = pc.replace_substring(text, self.quote_char, escape + self.quote_char)
        return pc.binary_join_element_wise(mark, escaped, mark, pa.scalar("", pa.large_string()))

    def _pattern(self, kind: pa.DataType) -> str | None:
        if pat.is_date(kind):
            return self.date_format
        return self.timestamp_format if pat.is_timestamp(kind) else None

    def _is_plain(self, kind: pa.DataType, pattern: str | None) -> bool:
        """Whether no value's text can need quotes: numbers, dates and the like, unless a mark is one of their signs."""
        texts = pat.is_string(kind) or pat.is_binary(kind) or pat.is_fixed_size_binary(kind)
        marks = self.delimiter + self.quote_char + (self.escape_char or "")
        return not texts and pattern is None and not re.search(r"[0-9a-zA-Z+\-.: ]", marks)


class CsvAssembler:
    """Puts the header once and compresses zstd text into one frame."""

    def __init__(self, compression: str) -> None:
        self._rows = 0
        self._begun = False
        self._out = _Collected()
        self._zstd = pa.CompressedOutputStream(pa.PythonFile(self._out, "w"), "zstd") if compression == "zstd" else None

    def append(self, encoded: EncodedRowGroup) -> Sequence[pa.Buffer]:
        """The bytes to append for more lines; see `Assembler.append`."""
        pieces = list(encoded.body)
        if not self._begun:
            pieces.insert(0, pa.py_buffer(encoded.detail))
            self._begun = True
        self._rows += encoded.rows
        if self._zstd is None:
            return pieces
        for piece in pieces:
            self._zstd.write(piece)
        self._zstd.flush()
        return self._out.take()

    def finish(self) -> tuple[Sequence[pa.Buffer], FileSummary]:
        """The last bytes, and what is in the file; see `Assembler.finish`."""
        if self._zstd is not None:
            self._zstd.close()
        return self._out.take(), FileSummary(self._rows)


class _Collected(io.RawIOBase):
    """A sink whose bytes are taken out as they come."""

    def __init__(self) -> None:
        self._pieces: list[pa.Buffer] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(pa.py_buffer(piece))
        return len(piece)

    def take(self) -> list[pa.Buffer]:
        pieces, self._pieces = self._pieces, []
        return pieces


def _cast_to_text(column: pa.Array, name: str, pattern: str | None) -> pa.Array:
    kind = column.type
    if pat.is_null(kind):
        return pa.nulls(len(column), pa.large_string())
    if isinstance(kind, pa.UuidType):
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.large_string())
    _refuse_far_times(column, name)
    if pattern is not None:
        return format_times(column, pattern)
    try:
        if pat.is_fixed_size_binary(kind) and not pat.is_decimal(kind):
            column = column.cast(pa.binary())
        return column.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise DataError(f"column '{name}': {kind} can't be written as text: {error}") from error


def _refuse_far_times(column: pa.Array, name: str) -> None:
    """Arrow has no text for years beyond four digits."""
    kind = column.type
    if pat.is_date(kind):
        per_day = 1
    elif pat.is_timestamp(kind):
        per_day = 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    else:
        return
    whole = column.cast(pa.int32() if pat.is_date(kind) else pa.int64())
    found = pc.min_max(whole).as_py()
    if found["min"] is not None and not _FIRST_DAY * per_day <= found["min"] <= found["max"] < _LAST_DAY * per_day:
        raise DataError(f"column '{name}': a time lies outside of the years 1 to 9999, which CSV has no text for")


def _contents(lines: pa.Array) -> pa.Buffer:
    """The bytes of all values of a text array, one after another."""
    _, offsets, data = lines.buffers()
    if data is None:
        return pa.py_buffer(b"")
    width = 8
    first = int.from_bytes(offsets.slice(lines.offset * width, width).to_pybytes(), "little")
    last = int.from_bytes(offsets.slice((lines.offset + len(lines)) * width, width).to_pybytes(), "little")
    return data.slice(first, last - first)
