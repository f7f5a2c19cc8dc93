"""Reading files and Arrow data into a `DataFrame`."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from daftwrite.dataframe import DataFrame
from daftwrite.engine.query import Bind, Query, QueryError, quote_literal
from daftwrite.errors import ConfigError

__all__ = ["from_arrow", "read_csv", "read_parquet"]

_UNION = "pass union_by_name=True to take the columns of all files"

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read_csv(
    path: Paths,
    *,
    delimiter: str | None = None,
    has_header: bool | None = None,
    null_values: str | Sequence[str] | None = None,
    schema_overrides: Mapping[str, str] | None = None,
    quote_char: str | None = None,
    infer_schema_rows: int | None = None,
    union_by_name: bool = False,
) -> DataFrame:
    """Read CSV files, plain or compressed with gzip or zstd.

    Args:
        path: a file, a glob, or a list of them.
        delimiter: the character between values. Default: detected.
        has_header: whether the first line holds the column names. Default: detected.
        null_values: text that stands for a null. Default: the empty text.
        schema_overrides: column to SQL type, such as `{"zip": "VARCHAR"}`, for types that detection would miss.
        quote_char: the character around values. Default: detected.
        infer_schema_rows: rows to detect types from. Default: 20,480; -1 reads all of them.
        union_by_name: take the columns of all files, with nulls where a file lacks one. Default: files that have other
            columns than the first are refused.

    Returns:
        A frame that reads the files when it is written.

    Raises:
        QueryError: when a file can't be read, as soon as the frame's schema is asked for.
    """
    for name, character in (("delimiter", delimiter), ("quote_char", quote_char)):
        if character is not None and (not isinstance(character, str) or len(character) != 1):
            raise ConfigError(f"{name} must be one character, not {character!r}")
    nulls = [null_values] if isinstance(null_values, str) else null_values
    options = {
        "delim": delimiter,
        "header": has_header,
        "nullstr": None if nulls is None else list(nulls),
        "types": None if schema_overrides is None else dict(schema_overrides),
        "quote": quote_char,
        "sample_size": infer_schema_rows,
    }
    return _read("read_csv", path, options, union_by_name)


def read_parquet(path: Paths, *, hive_partitioning: bool | None = None, union_by_name: bool = False) -> DataFrame:
    """Read Parquet files.

    Args:
        path: a file, a glob, or a list of them.
        hive_partitioning: whether `column=value` folders become columns. Default: detected.
        union_by_name: take the columns of all files, with nulls where a file lacks one, and the wider of their types.
            Default: files that have other columns or types than the first are refused.

    Returns:
        A frame that reads the files when it is written.

    Raises:
        QueryError: when a file can't be read, as soon as the frame's schema is asked for.
    """
    return _read("read_parquet", path, {"hive_partitioning": hive_partitioning}, union_by_name)


def _read(function: str, path: Paths, options: Mapping[str, Any], union_by_name: bool) -> DataFrame:
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    names = [os.fspath(item) for item in paths]
    if not names or not all(names):
        raise ConfigError(f"{function} needs at least one path, not {path!r}")
    for name in names:
        if "://" in name:
            raise ConfigError(f"path {name!r} is not local; only local files can be read yet")
    given = "".join(f", {key} = {quote_literal(value)}" for key, value in options.items() if value is not None)

    def statement(files: list[str], union: bool) -> str:
        return f"select * from {function}({quote_literal(files)}{given}{', union_by_name = true' if union else ''})"

    def check(bind: Bind, schema: pa.Schema) -> None:
        everything = bind(statement(names, union=True))
        for field in everything:
            index = schema.get_field_index(field.name)
            if index < 0:
                file = _file_with(field.name, names, lambda name: bind(statement([name], union=False)))
                raise QueryError(f"column '{field.name}' is in {file} and not in the first file; {_UNION}")
            first = schema.field(index).type
            # What CSV files hold for text of another type is refused when it is read.
            if function == "read_parquet" and field.type != first:
                raise QueryError(
                    f"column '{field.name}' is {first} in the first file, and others need {field.type}; {_UNION}"
                )

    several = len(names) > 1 or os.path.isdir(names[0]) or any(sign in names[0] for sign in "*?[")
    return DataFrame(Query(statement(names, union_by_name), check if several and not union_by_name else None))


def _file_with(column: str, names: list[str], bind: Callable[[str], pa.Schema]) -> str:
    patterns = [os.path.join(name, "**") if os.path.isdir(name) else name for name in names]
    files = [file for pattern in patterns for file in sorted(glob.glob(pattern, recursive=True))]
    return next((file for file in files if os.path.isfile(file) and column in bind(file).names), "another file")


def from_arrow(data: Any) -> DataFrame:
    """Take Arrow data as it is, without the query engine.

    Args:
        data: anything with `__arrow_c_stream__` (pyarrow, Polars, DuckDB, pandas), a `RecordBatchReader`, a pyarrow
            Dataset or Scanner, or an iterable, also an asynchronous one, of batches or tables. A reader or iterator can
            be written once.

    Returns:
        A frame that pulls from the data when it is written.

    Raises:
        ConfigError: when it is written and `data` is none of these.
    """
    return DataFrame(data)
