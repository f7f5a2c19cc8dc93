"""What can be written to, as values that `open_writer` takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from daftwrite.catalog.iceberg import require_pyiceberg
from daftwrite.errors import ConfigError
from daftwrite.formats.csv import CsvFormat
from daftwrite.formats.parquet import ParquetFormat
from daftwrite.tables.base import PartitionBy, Table, WriteOptions, partition_fields
from daftwrite.tables.files import DirectoryTable

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
        mode: `"append"`.
        catalog: the pyiceberg catalog in which to look an identifier up. Default: the configured catalog, or without
            any configuration the embedded one in `./warehouse`.
        create: make the namespace and the table, from the source's schema, when they are missing.
        partition_by: how to partition a table that is made.
    """

    table: PyIcebergTable | str
    mode: str = "append"
    catalog: Catalog | None = None
    create: bool = False
    partition_by: PartitionBy = None

    def open(self, options: WriteOptions) -> Table:
        """One write to the table; see `Target.open`."""
        require_pyiceberg()
        from pyiceberg.table import Table as PyIcebergTable

        from daftwrite.tables.iceberg.table import IcebergTable

        if self.mode != "append":
            raise ConfigError(f"mode must be 'append' for an Iceberg table, not {self.mode!r}")
        if not isinstance(self.table, (str, PyIcebergTable)):
            raise ConfigError(f"table must be a pyiceberg Table or an identifier, not {self.table!r}")
        if options.compression is not None:
            ParquetFormat(options.compression, options.compression_level)
        elif options.compression_level is not None:
            raise ConfigError("compression_level needs compression beside it")
        return IcebergTable(self.table, self.catalog, self.create, partition_fields(self.partition_by))


@dataclass(frozen=True)
class ParquetTarget:
    """A local directory of Parquet files.

    Args:
        path: the directory.
        mode: `"error"` (default) refuses a path that exists, `"append"` adds files.
        partition_by: columns and transforms that make Hive folders.
    """

    path: str | os.PathLike[str]
    mode: str = "error"
    partition_by: PartitionBy = None

    def open(self, options: WriteOptions) -> Table:
        """One write to the directory; see `Target.open`."""
        _refuse_coercion(options)
        made = ParquetFormat("zstd" if options.compression is None else options.compression, options.compression_level)
        return DirectoryTable(self.path, made, self.mode, partition_fields(self.partition_by))


@dataclass(frozen=True)
class CsvTarget:
    """A local directory of CSV files.

    Args:
        path: the directory.
        mode: `"error"` (default) refuses a path that exists, `"append"` adds files.
        partition_by: columns and transforms that make Hive folders.
        delimiter: one character between values.
        include_header: whether each file begins with the column names.
        quoting_style: `"needed"`, `"all_valid"` or `"none"`.
        null_text: what stands for a null.
    """

    path: str | os.PathLike[str]
    mode: str = "error"
    partition_by: PartitionBy = None
    delimiter: str = ","
    include_header: bool = True
    quoting_style: str = "needed"
    null_text: str = ""

    def open(self, options: WriteOptions) -> Table:
        """One write to the directory; see `Target.open`."""
        _refuse_coercion(options)
        for name in ("compression_level", "row_group_size", "row_group_rows"):
            if getattr(options, name) is not None:
                raise ConfigError(f"{name} can't be set for csv")
        made = CsvFormat(
            self.delimiter,
            self.include_header,
            self.quoting_style,
            self.null_text,
            "none" if options.compression is None else options.compression,
        )
        return DirectoryTable(self.path, made, self.mode, partition_fields(self.partition_by))


def _refuse_coercion(options: WriteOptions) -> None:
    if options.coerce_timestamps is not None:
        raise ConfigError("coerce_timestamps is for Iceberg tables; directories keep the source's units")


def as_target(target: Any) -> Target:
    """A target from what `open_writer` takes: a target, a pyiceberg table, or an Iceberg identifier."""
    if isinstance(target, (IcebergTarget, ParquetTarget, CsvTarget)):
        return target
    return IcebergTarget(target)
