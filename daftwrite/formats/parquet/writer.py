"""The Parquet format: which types it stores, and how a row group is encoded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from daftwrite.errors import ConfigError, SchemaError
from daftwrite.formats.base import EncodedRowGroup
from daftwrite.formats.parquet.assemble import MAGIC, ParquetAssembler, RowGroupFooter
from daftwrite.formats.parquet.encodings import dictionary_columns, leaf_paths
from daftwrite.formats.parquet.footer import split_file
from daftwrite.formats.parquet.statistics import count_nans, leaves, read_statistics
from daftwrite.pipeline.types import is_list, is_opaque, logical_type

__all__ = ["CODECS", "BloomFilter", "ParquetFormat"]

CODECS = ("zstd", "snappy", "gzip", "brotli", "lz4", "none")
_LEVELS = {"zstd": range(-131072, 23), "gzip": range(1, 10), "brotli": range(12)}


@dataclass(frozen=True)
class BloomFilter:
    """A split-block Bloom filter for one column in each row group.

    Attributes:
        column: the leaf column's dotted Parquet path.
        false_positive_rate: the wanted share of values that pass without being there.
        distinct: expected distinct values of a row group; None for its number of rows.
        max_bytes: the filter is not larger than this.
    """

    column: str
    false_positive_rate: float = 0.01
    distinct: int | None = None
    max_bytes: int = 1 << 20

    def options(self, rows: int) -> dict[str, Any]:
        """What pyarrow takes for a row group of so many rows."""
        whole = 1 << (max(32, self.max_bytes).bit_length() - 1)
        distinct = min(self.distinct or rows, math.floor(whole * self._distinct_per_byte()))
        return {"ndv": max(1, distinct), "fpp": self.false_positive_rate}

    def nbytes(self, rows: int) -> int:
        """The most bytes of the filter of so many rows, which are rounded up to a power of two."""
        return 32 + math.ceil(2 * (self.distinct or rows) / self._distinct_per_byte())

    def _distinct_per_byte(self) -> float:
        return -math.log1p(-(self.false_positive_rate ** (1 / 8)))


@dataclass(frozen=True)
class ParquetFormat:
    """Parquet with its options.

    Args:
        compression: `"zstd"` (default), `"snappy"`, `"gzip"`, `"brotli"`, `"lz4"` or `"none"`.
        compression_level: the codec's level; None for its default.
        data_page_size: bytes of a data page before compression. Default 1 MiB.
        dictionary_page_size: bytes at which a dictionary is given up. Default 1 MiB.
        max_rows_per_page: rows of a data page. Default 20,000.
        store_schema: keep the Arrow schema in the footer, so that pyarrow restores time zones and durations.
        data_page_version: `"1.0"` (default) or `"2.0"`.
        bloom_filters: Bloom filters to write.
        dictionaries: leaf columns (dotted Parquet paths) that always or never get a dictionary.
        statistics: leaf columns with or without statistics; all others have them.
    """

    compression: str = "zstd"
    compression_level: int | None = None
    data_page_size: int = 1 << 20
    dictionary_page_size: int = 1 << 20
    max_rows_per_page: int = 20_000
    store_schema: bool = True
    data_page_version: str = "1.0"
    bloom_filters: tuple[BloomFilter, ...] = ()
    dictionaries: tuple[tuple[str, bool], ...] = ()
    statistics: tuple[tuple[str, bool], ...] = ()

    name: ClassVar[str] = "parquet"
    extension: ClassVar[str] = "parquet"
    extensions: ClassVar[tuple[str, ...]] = (".parquet", ".parq", ".pq")

    def __post_init__(self) -> None:
        if self.compression not in CODECS:
            raise ConfigError(f"compression must be one of {', '.join(CODECS)} for parquet, not {self.compression!r}")
        level = self.compression_level
        if level is not None and (isinstance(level, bool) or not isinstance(level, int)):
            raise ConfigError(f"compression_level must be a whole number, not {level!r}")
        if level is not None:
            allowed = _LEVELS.get(self.compression)
            if allowed is None:
                raise ConfigError(f"compression_level has no meaning for compression {self.compression!r}")
            if level not in allowed:
                raise ConfigError(
                    f"compression_level for {self.compression} must be from {allowed[0]} to {allowed[-1]}, not {level}"
                )

    def schema(self, source: pa.Schema) -> pa.Schema:
        """The types that Parquet stores for a source's; see `Format.schema`."""
        problems: list[str] = []
        fields = [_stored_field(field, field.name, problems) for field in source]
        if problems:
            raise SchemaError("the source has types that Parquet can't store", problems)
        return pa.schema(fields)

    def encoded_bound(self, schema: pa.Schema, rows: int, nbytes: int) -> int:
        """Plain encoding, where narrow integers take four bytes, and filters; see `Format.encoded_bound`."""
        narrow = sum(1 for field in schema if pa.types.is_integer(field.type) and field.type.bit_width < 32)
        blooms = sum(min(bloom.max_bytes, bloom.nbytes(rows)) for bloom in self.bloom_filters)
        return nbytes + 3 * narrow * rows + 512 * len(schema) + blooms

    def encode(self, table: pa.Table) -> EncodedRowGroup:
        """Encode rows as one row group; see `Format.encode`."""
        sink = pa.BufferOutputStream()
        writer = pq.ParquetWriter(
            sink,
            table.schema,
            version="2.6",
            compression=self.compression,
            compression_level=self.compression_level,
            use_dictionary=self._dictionary_columns(table),
            data_page_version=self.data_page_version,
            write_statistics=self._statistics_columns(table.schema),
            bloom_filter_options={bloom.column: bloom.options(table.num_rows) for bloom in self.bloom_filters} or None,
            data_page_size=self.data_page_size,
            dictionary_pagesize_limit=self.dictionary_page_size,
            max_rows_per_page=self.max_rows_per_page,
            store_schema=self.store_schema,
            store_decimal_as_integer=True,
        )
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
        writer.close()
        data = sink.getvalue()
        footer_start, metadata = split_file(memoryview(data))
        groups = metadata[4][1][1]
        statistics = read_statistics(groups[0], leaves(metadata), count_nans(table)) if groups else []
        body = data.slice(len(MAGIC), footer_start - len(MAGIC))
        return EncodedRowGroup(table.num_rows, [body], RowGroupFooter(metadata, statistics))

    def _dictionary_columns(self, table: pa.Table) -> list[str]:
        chosen = dictionary_columns(table)
        for column, enabled in self.dictionaries:
            if enabled and column not in chosen:
                chosen.append(column)
            elif not enabled and column in chosen:
                chosen.remove(column)
        return chosen

    def _statistics_columns(self, schema: pa.Schema) -> bool | list[str]:
        without = {column for column, enabled in self.statistics if not enabled}
        if not without:
            return True
        paths = [path for field in schema for path in leaf_paths(field.type, field.name)]
        return [path for path in paths if path not in without]

    def assembler(self) -> ParquetAssembler:
        """A fresh assembler for one file."""
        return ParquetAssembler()


def _stored_field(field: pa.Field, path: str, problems: list[str]) -> pa.Field:
    return pa.field(field.name, _stored_type(field.type, path, problems), field.nullable)


def _stored_type(kind: pa.DataType, path: str, problems: list[str]) -> pa.DataType:
    kind = logical_type(kind)
    if pa.types.is_struct(kind):
        if not kind.num_fields:
            problems.append(f"column '{path}': a struct without fields has no columns to store")
        return pa.struct([_stored_field(f, f"{path}.{f.name}", problems) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(
            pa.field("key", _stored_type(kind.key_type, f"{path}.key", problems), nullable=False),
            pa.field("value", _stored_type(kind.item_type, f"{path}.value", problems), kind.item_field.nullable),
        )
    if is_list(kind):
        value = kind.value_field
        return pa.list_(pa.field("element", _stored_type(value.type, f"{path}.element", problems), value.nullable))
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    if pa.types.is_time32(kind) and kind.unit == "s":
        return pa.time32("ms")
    if pa.types.is_decimal(kind) and kind.scale < 0:
        problems.append(f"column '{path}': {kind} has a negative scale, which Parquet doesn't know")
        return pa.string()
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_interval(kind) or pa.types.is_union(kind) or is_opaque(kind):
        problems.append(f"column '{path}': {kind} has no Parquet type")
    return kind
