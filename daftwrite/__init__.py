"""Streaming writes of Arrow data into table formats, in bounded memory."""

from __future__ import annotations

from daftwrite.catalog.iceberg import embedded_catalog
from daftwrite.dataframe import DataFrame
from daftwrite.errors import (
    AlreadyExists,
    CommitConflict,
    CommitError,
    CommitStateUnknown,
    ConfigError,
    DaftwriteError,
    DataError,
    MissingDependency,
    SchemaError,
    StoreError,
    TableNotFound,
    WriteError,
    WriterClosed,
)
from daftwrite.explanation import ColumnAlignment, Explanation, Setting
from daftwrite.expressions import Column, Predicate, col
from daftwrite.pipeline.resources import Resources
from daftwrite.reading import from_arrow, read_csv, read_parquet
from daftwrite.result import ColumnStatistics, DataFile, WriteResult
from daftwrite.sorting import SortField, asc, desc
from daftwrite.targets import CsvTarget, IcebergTarget, ParquetTarget
from daftwrite.writers.transforms import PartitionField, bucket, day, hour, identity, month, truncate, year
from daftwrite.writing import SyncWriter, Writer, WriterContext, open_writer

__all__ = [
    "AlreadyExists",
    "Column",
    "ColumnAlignment",
    "ColumnStatistics",
    "CommitConflict",
    "CommitError",
    "CommitStateUnknown",
    "ConfigError",
    "CsvTarget",
    "DaftwriteError",
    "DataError",
    "DataFile",
    "DataFrame",
    "Explanation",
    "IcebergTarget",
    "MissingDependency",
    "ParquetTarget",
    "PartitionField",
    "Predicate",
    "Resources",
    "SchemaError",
    "Setting",
    "SortField",
    "StoreError",
    "SyncWriter",
    "TableNotFound",
    "WriteError",
    "WriteResult",
    "Writer",
    "WriterClosed",
    "WriterContext",
    "asc",
    "bucket",
    "col",
    "day",
    "desc",
    "embedded_catalog",
    "from_arrow",
    "hour",
    "identity",
    "month",
    "open_writer",
    "read_csv",
    "read_parquet",
    "truncate",
    "year",
]
