"""What can be written to, as values that `open_writer` takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from daftwrite.catalog.iceberg import require_pyiceberg
from daftwrite.errors import ConfigError
from daftwrite.formats.base import Format
from daftwrite.formats.csv import CsvFormat
from daftwrite.formats.parquet import ParquetFormat
from daftwrite.sorting import SortBy, sort_fields
from daftwrite.tables.base import PartitionBy, Table, WriteOptions, partition_fields
from daftwrite.tables.files import DirectoryOptions, DirectoryTable
from daftwrite.tables.single_file import SingleFileTable, names_a_file

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["CsvTarget", "IcebergTarget", "ParquetTarget", "Target", "as_target"]


class Target(Protocol):
    """A target with its own options."""

    def open(self, options: WriteOptions) -> Table:
        """One write to the target, or a `ConfigError` for an option that it can't honour."""
        ...


@dataclass(frozen=True)
class IcebergTarget:
    """An Iceberg table.

    Args:
        table: a pyiceberg `Table`, or an identifier such as `"namespace.table"` or `"catalog.namespace.table"`.
        mode: `"append"`; `"overwrite"` replaces all rows, or those that `overwrite_filter` matches;
            `"overwrite_partitions"` replaces every partition that the source has rows of.
        overwrite_filter: which rows `mode="overwrite"` replaces: text such as `"day = '2026-01-01'"`, a `dw.col`
            expression, or a pyiceberg expression. Default: all.
        allow_empty: let an overwrite whose source has no rows remove rows without writing any.
        schema_mode: `"merge"` adds the source's new columns to the table and promotes types; `"overwrite"`, with a
            `mode="overwrite"` of all rows, gives the table the source's schema. Both in the same commit as the data.
        branch: the branch to write to; a new one starts from main. Default: main.
        stage_only: make a snapshot that no branch has, to be audited and published later.
        snapshot_properties: text to text, for the snapshot's summary.
        catalog: the pyiceberg catalog in which to look an identifier up. Default: the configured catalog, or without
            any configuration the embedded one in `./warehouse`.
        create: `True` makes the namespace and the table, from the source's schema, when they are missing;
            `"or_replace"` also replaces a table that exists, whose history stays.
        partition_by: how to partition a table that is made.
        sort_by: the sort order of a table that is made: columns, `dw.asc(...)`, `dw.desc(...)`.
        properties: the properties of a table that is made.
        identifier_fields: columns that identify a row of a table that is made.
    """

    table: PyIcebergTable | str
    mode: str = "append"
    overwrite_filter: Any = None
    allow_empty: bool = False
    schema_mode: str | None = None
    branch: str | None = None
    stage_only: bool = False
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    catalog: Catalog | None = None
    create: bool | str = False
    partition_by: PartitionBy = None
    sort_by: SortBy = None
    properties: Mapping[str, str] = field(default_factory=dict)
    identifier_fields: Sequence[str] = ()

    def open(self, options: WriteOptions) -> Table:
        """One write to the table; see `Target.open`."""
        require_pyiceberg()
        from pyiceberg.catalog import Catalog
        from pyiceberg.table import Table as PyIcebergTable

        from daftwrite.tables.iceberg.options import IcebergOptions
        from daftwrite.tables.iceberg.table import IcebergTable

        if not isinstance(self.table, (str, PyIcebergTable)):
            raise ConfigError(f"table must be a pyiceberg Table or an identifier, not {self.table!r}")
        if isinstance(self.table, str) and ":" in self.table:
            raise ConfigError(f"table {self.table!r} must be 'namespace.table', without a scheme before it")
        if self.catalog is not None and not isinstance(self.catalog, Catalog):
            raise ConfigError(
                f"catalog must be a pyiceberg Catalog, as load_catalog gives it, not {self.catalog!r}; a configured "
                "one is named before the table, as in 'catalog.namespace.table'"
            )
        if options.compression is not None:
            ParquetFormat(options.compression, options.compression_level)
        elif options.compression_level is not None:
            raise ConfigError("compression_level needs compression beside it")
        asked = IcebergOptions(
            mode=self.mode,
            overwrite_filter=self.overwrite_filter,
            allow_empty=self.allow_empty,
            schema_mode=self.schema_mode,
            branch=self.branch,
            stage_only=self.stage_only,
            snapshot_properties=self.snapshot_properties,
            create=self.create,
            partition_by=partition_fields(self.partition_by),
            sort_by=sort_fields(self.sort_by),
            properties=self.properties,
            identifier_fields=_names(self.identifier_fields, "identifier_fields"),
        )
        return IcebergTable(self.table, self.catalog, asked)


def _names(given: Any, option: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ConfigError(f"{option} takes a list of columns, not {given!r}")
    return tuple(given)


@dataclass(frozen=True)
class ParquetTarget:
    """A local directory of Parquet files, or one file where the path ends in a Parquet file's name.

    Args:
        path: the directory or file; a `/` at its end makes any name a directory.
        mode: `"error"` (default) refuses a path that exists, `"append"` adds files, `"overwrite"` replaces all Parquet
            files, `"overwrite_partitions"` replaces those of every partition that the source has rows of, `"ignore"`
            writes nothing where the path exists.
        partition_by: columns and transforms that make Hive folders.
        allow_empty: let `mode="overwrite"` by a source without rows leave none.
        write_metadata_file: write a `_metadata` file with the footers of all files.
        write_success_file: write an empty `_SUCCESS` file when all else is done.
    """

    path: str | os.PathLike[str]
    mode: str = "error"
    partition_by: PartitionBy = None
    allow_empty: bool = False
    write_metadata_file: bool = False
    write_success_file: bool = False

    def open(self, options: WriteOptions) -> Table:
        """One write to the directory; see `Target.open`."""
        _refuse_coercion(options)
        made = ParquetFormat("zstd" if options.compression is None else options.compression, options.compression_level)
        asked = DirectoryOptions(
            self.mode,
            partition_fields(self.partition_by),
            self.allow_empty,
            self.write_metadata_file,
            self.write_success_file,
        )
        return _plain_table(self.path, made, asked)


@dataclass(frozen=True)
class CsvTarget:
    """A local directory of CSV files, or one file where the path ends in a CSV file's name.

    Args:
        path: the directory or file; a `/` at its end makes any name a directory.
        mode: as of `ParquetTarget`.
        partition_by: columns and transforms that make Hive folders.
        allow_empty: let `mode="overwrite"` by a source without rows leave none.
        write_success_file: write an empty `_SUCCESS` file when all else is done.
        delimiter: one character between values.
        include_header: whether each file begins with the column names.
        quoting_style: `"needed"`, `"all_valid"` or `"none"`.
        null_text: what stands for a null.
        quote_char: one character around values.
        escape_char: one character before a quote inside a value; by default the quote is doubled.
        force_quote: columns whose values are quoted always, nulls excepted.
        date_format: a pattern for dates, such as `"%d.%m.%Y"`. Default: ISO 8601.
        timestamp_format: a pattern for timestamps. Default: ISO 8601 with a space.
        line_terminator: a line feed, or carriage return and line feed.
        include_bom: whether each file begins with UTF-8's byte order mark.
    """

    path: str | os.PathLike[str]
    mode: str = "error"
    partition_by: PartitionBy = None
    allow_empty: bool = False
    write_success_file: bool = False
    delimiter: str = ","
    include_header: bool = True
    quoting_style: str = "needed"
    null_text: str = ""
    quote_char: str = '"'
    escape_char: str | None = None
    force_quote: Sequence[str] = ()
    date_format: str | None = None
    timestamp_format: str | None = None
    line_terminator: str = "\n"
    include_bom: bool = False

    def open(self, options: WriteOptions) -> Table:
        """One write to the directory; see `Target.open`."""
        _refuse_coercion(options)
        for name in ("compression_level", "row_group_size", "row_group_rows"):
            if getattr(options, name) is not None:
                raise ConfigError(f"{name} can't be set for csv")
        made = CsvFormat(
            delimiter=self.delimiter,
            include_header=self.include_header,
            quoting_style=self.quoting_style,
            null_text=self.null_text,
            compression=self._compression(options.compression),
            quote_char=self.quote_char,
            escape_char=self.escape_char,
            force_quote=_names(self.force_quote, "force_quote"),
            date_format=self.date_format,
            timestamp_format=self.timestamp_format,
            line_terminator=self.line_terminator,
            include_bom=self.include_bom,
        )
        asked = DirectoryOptions(
            self.mode,
            partition_fields(self.partition_by),
            self.allow_empty,
            write_success_file=self.write_success_file,
        )
        return _plain_table(self.path, made, asked)

    def _compression(self, asked: str | None) -> str:
        """The codec asked for, or the one that the name of a single file tells."""
        if asked is not None:
            return asked
        if names_a_file(self.path, CsvFormat.extensions):
            ends = {".gz": "gzip", ".zst": "zstd"}
            return ends.get(os.path.splitext(os.fspath(self.path))[1].lower(), "none")
        return "none"


def _plain_table(path: str | os.PathLike[str], file_format: Format, options: DirectoryOptions) -> Table:
    if names_a_file(path, file_format.extensions):
        return SingleFileTable(path, file_format, options)
    for other in (ParquetFormat, CsvFormat):
        if names_a_file(path, other.extensions):
            raise ConfigError(
                f"path {os.fspath(path)!r} ends as a {other.name} file, and {file_format.name} is written; change "
                "one of them, or end the path in '/' for a directory"
            )
    return DirectoryTable(path, file_format, options)


def _refuse_coercion(options: WriteOptions) -> None:
    if options.coerce_timestamps is not None:
        raise ConfigError("coerce_timestamps is for Iceberg tables; directories keep the source's units")


def as_target(target: Any) -> Target:
    """A target from what `open_writer` takes: a target, a pyiceberg table, or an Iceberg identifier."""
    if isinstance(target, (IcebergTarget, ParquetTarget, CsvTarget)):
        return target
    return IcebergTarget(target)
