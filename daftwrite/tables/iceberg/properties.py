"""Table properties: what each means here, with one clear error for a value that can't be honoured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pyiceberg.avro.codecs import KNOWN_CODECS
from pyiceberg.table.name_mapping import parse_mapping_from_json

from daftwrite.errors import ConfigError
from daftwrite.formats.parquet import ParquetFormat
from daftwrite.formats.parquet.writer import CODECS, BloomFilter
from daftwrite.plan import Sizes
from daftwrite.tables.base import WriteOptions

__all__ = ["TableProperties", "parquet_format", "refuse_unsupported"]

_CODEC = "write.parquet.compression-codec"
_LEVEL = "write.parquet.compression-level"
_BLOOM = "write.parquet.bloom-filter-enabled.column."
_BLOOM_FPP = "write.parquet.bloom-filter-fpp.column."
_BLOOM_NDV = "write.parquet.bloom-filter-ndv.column."
_BLOOM_MAX = "write.parquet.bloom-filter-max-bytes"
_BLOOM_ADAPTIVE = "write.parquet.bloom-filter-adaptive-enabled"
_STATISTICS = "write.parquet.stats-enabled.column."
_DICTIONARY = "write.parquet.dict-encoding-enabled.column."
_CODEC_NAMES = {"uncompressed": "none", "lz4_raw": "lz4"}

AvroCodec = Literal["null", "bzip2", "deflate", "zstandard", "snappy"]

_AVRO_CODECS: dict[str, AvroCodec] = {
    "gzip": "deflate",
    "deflate": "deflate",
    "zstd": "zstandard",
    "zstandard": "zstandard",
    "snappy": "snappy",
    "bzip2": "bzip2",
    "uncompressed": "null",
    "none": "null",
    "null": "null",
}


class TableProperties:
    """The properties of a table, parsed where they are asked for.

    Args:
        properties: as they stand in the metadata.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties

    def positive(self, key: str, default: int) -> int:
        """A number above zero."""
        return self._number(key, default, 1)

    def natural(self, key: str, default: int) -> int:
        """A number from zero."""
        return self._number(key, default, 0)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        text = self._properties.get(key, str(default)).strip().lower()
        if text not in ("true", "false"):
            raise ConfigError(f"table property {key} must be true or false, not {self._properties[key]!r}")
        return text == "true"

    def columns(self, prefix: str) -> dict[str, str]:
        """Column to text, for the properties whose name ends in a column's."""
        return {key[len(prefix) :]: value for key, value in self._properties.items() if key.startswith(prefix)}

    def _number(self, key: str, default: int, least: int) -> int:
        text = self._properties.get(key, str(default))
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            kind = "positive number" if least else "number from 0"
            raise ConfigError(f"table property {key} must be a {kind}, not {text!r}")
        return number

    @property
    def sizes(self) -> Sizes:
        """File and row-group sizes."""
        return Sizes(
            self.positive("write.target-file-size-bytes", Sizes.target_file_size),
            self.positive("write.parquet.row-group-size-bytes", Sizes.row_group_size),
            self.positive("write.parquet.row-group-limit", Sizes.row_group_rows),
        )

    @property
    def retries(self) -> int:
        """How often a refused commit is tried again. Iceberg's 4 are too few where several processes commit at once."""
        return self.natural("commit.retry.num-retries", 10)

    @property
    def retry_wait_seconds(self) -> tuple[float, float]:
        """The least and the longest wait between two tries."""
        least = self.natural("commit.retry.min-wait-ms", 100) / 1000
        return least, self.natural("commit.retry.max-wait-ms", 60_000) / 1000

    @property
    def retry_total_seconds(self) -> float:
        """After this time no further try begins."""
        return self.natural("commit.retry.total-timeout-ms", 1_800_000) / 1000

    @property
    def status_checks(self) -> int:
        """How often it is looked whether a doubtful commit landed."""
        return self.positive("commit.status-check.num-retries", 3)

    @property
    def status_wait_seconds(self) -> tuple[float, float]:
        """The least and the longest wait between two such looks."""
        least = self.natural("commit.status-check.min-wait-ms", 1_000) / 1000
        return least, self.natural("commit.status-check.max-wait-ms", 60_000) / 1000

    @property
    def status_total_seconds(self) -> float:
        """After this time no further look begins."""
        return self.natural("commit.status-check.total-timeout-ms", 1_800_000) / 1000

    @property
    def manifest_merge(self) -> bool:
        """Whether small manifests are merged while committing. On unless switched off, as in Iceberg's own library."""
        return self.flag("commit.manifest-merge.enabled", True)

    @property
    def manifest_target_size(self) -> int:
        """Bytes at which a manifest ends."""
        return self.positive("commit.manifest.target-size-bytes", 8 << 20)

    @property
    def manifest_min_count_to_merge(self) -> int:
        """How many manifests must come together before the newest is merged."""
        return self.positive("commit.manifest.min-count-to-merge", 100)

    @property
    def manifest_compression(self) -> AvroCodec:
        """The codec of manifests and manifest lists."""
        key = "write.manifest.compression-codec"
        if key not in self._properties:
            key = "write.avro.compression-codec"
        text = self._properties.get(key, "gzip").lower()
        if text not in _AVRO_CODECS:
            raise ConfigError(f"table property {key} must be one of {', '.join(_AVRO_CODECS)}, not {text!r}")
        codec = _AVRO_CODECS[text]
        try:
            implementation = KNOWN_CODECS[codec]
            if implementation is not None:
                implementation.compress(b"")
        except ImportError as error:
            raise ConfigError(f"table property {key}={text} needs a package that isn't installed: {error}") from error
        return codec

    @property
    def partition_summary_limit(self) -> int:
        """How many partitions may be told apart in a snapshot's summary."""
        return self.natural("write.summary.partition-limit", 0)

    def serializable(self, operation: str) -> bool:
        """Whether a write is refused when rows that it would have replaced were added meanwhile.

        Args:
            operation: `"update"`, or `"delete"` for a write that only removes rows.
        """
        key = f"write.{operation}.isolation-level"
        text = self._properties.get(key, "serializable").lower()
        if text not in ("serializable", "snapshot"):
            raise ConfigError(f"table property {key} must be serializable or snapshot, not {text!r}")
        return text == "serializable"

    @property
    def write_audit_publish(self) -> bool:
        """Whether writes to main have to be audited first (`write.wap.enabled`)."""
        return self.flag("write.wap.enabled", False)

    def check(self) -> None:
        """Read every property once, so that a wrong value is refused before any data is asked for."""
        for value in (
            self.sizes,
            self.retries,
            self.retry_wait_seconds,
            self.retry_total_seconds,
            self.status_checks,
            self.status_wait_seconds,
            self.status_total_seconds,
            self.manifest_merge,
            self.manifest_target_size,
            self.manifest_min_count_to_merge,
            self.manifest_compression,
            self.partition_summary_limit,
            self.serializable("update"),
            self.serializable("delete"),
            self.write_audit_publish,
            self.natural("write.metadata.previous-versions-max", 100),
            self.flag("write.metadata.delete-after-commit.enabled", False),
            self.flag("write.object-storage.enabled", False),
            self.flag("write.object-storage.partitioned-paths", True),
        ):
            del value


def refuse_unsupported(name: str, version: int, properties: Mapping[str, str]) -> None:
    """Refuse tables that ask for what can't be written.

    Raises:
        ConfigError: naming the property or format version.
    """
    if version > 2:
        raise ConfigError(f"table {name} has format version {version}; versions 1 and 2 can be written")
    wanted = properties.get("write.format.default", "parquet").lower()
    if wanted != "parquet":
        raise ConfigError(f"table {name} has write.format.default={wanted}; only parquet can be written")
    for key in properties:
        if key.startswith("encryption."):
            raise ConfigError(f"table {name} has {key} set; encrypted tables can't be written")
    for kind in ("delete", "update", "merge"):
        mode = properties.get(f"write.{kind}.mode", "copy-on-write").lower()
        if mode not in ("copy-on-write", "merge-on-read"):
            raise ConfigError(f"table {name} has write.{kind}.mode={mode}; modes are copy-on-write and merge-on-read")
    if "write.location-provider.impl" in properties:
        raise ConfigError(
            f"table {name} has write.location-provider.impl set, a Java class; set write.py-location-provider.impl"
        )
    for key in ("write.folder-storage.path", "write.object-storage.path"):
        if key in properties:
            raise ConfigError(f"table {name} has the deprecated {key} set; set write.data.path")
    if mapping := properties.get("schema.name-mapping.default"):
        try:
            parse_mapping_from_json(mapping)
        except ValueError as error:
            raise ConfigError(f"table {name} has schema.name-mapping.default={mapping}, which is no mapping") from error
    TableProperties(properties).check()


def parquet_format(properties: Mapping[str, str], options: WriteOptions, columns: Mapping[str, str]) -> ParquetFormat:
    """The Parquet options that a table and a write ask for.

    Args:
        properties: the table's properties.
        options: the write's; they win.
        columns: dotted column to its path in the file, for each leaf.
    """
    parsed = TableProperties(properties)
    codec = options.compression
    level = options.compression_level
    if codec is None:
        text = properties.get(_CODEC, "zstd").lower()
        codec = _CODEC_NAMES.get(text, text)
        if codec not in CODECS:
            raise ConfigError(f"table property {_CODEC} must be one of {', '.join(CODECS)}, not {text!r}")
        if level is None and _LEVEL in properties:
            try:
                level = int(properties[_LEVEL])
            except ValueError as error:
                raise ConfigError(f"table property {_LEVEL} must be a number, not {properties[_LEVEL]!r}") from error
    version = properties.get("write.parquet.page-version", "v1").lower()
    if version not in ("v1", "v2"):
        raise ConfigError(f"table property write.parquet.page-version must be v1 or v2, not {version!r}")
    return ParquetFormat(
        compression=codec,
        compression_level=level,
        data_page_size=parsed.positive("write.parquet.page-size-bytes", 1 << 20),
        dictionary_page_size=parsed.positive("write.parquet.dict-size-bytes", 2 << 20),
        max_rows_per_page=parsed.positive("write.parquet.page-row-limit", 20_000),
        store_schema=False,
        data_page_version="2.0" if version == "v2" else "1.0",
        bloom_filters=_bloom_filters(parsed, columns),
        dictionaries=_column_flags(parsed, _DICTIONARY, columns),
        statistics=_column_flags(parsed, _STATISTICS, columns),
    )


def _column_flags(properties: TableProperties, prefix: str, columns: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    found = []
    for column in properties.columns(prefix):
        value = properties.flag(prefix + column, True)
        # A property of a column that the table no longer has asks for nothing.
        if column in columns:
            found.append((columns[column], value))
    return tuple(found)


def _bloom_filters(properties: TableProperties, columns: Mapping[str, str]) -> tuple[BloomFilter, ...]:
    most = properties.positive(_BLOOM_MAX, 1 << 20)
    wanted = dict(_column_flags(properties, _BLOOM, columns))
    rates = properties.columns(_BLOOM_FPP)
    counts = properties.columns(_BLOOM_NDV)
    if properties.flag(_BLOOM_ADAPTIVE, False) and any(wanted.values()):
        raise ConfigError(f"table property {_BLOOM_ADAPTIVE}=true can't be honoured; set {_BLOOM_NDV}<column>")
    names = {path: column for column, path in columns.items()}
    filters = []
    for path, enabled in wanted.items():
        column = names[path]
        rate = _rate(_BLOOM_FPP + column, rates.get(column, "0.01"))
        distinct = properties.positive(_BLOOM_NDV + column, 1) if column in counts else None
        if enabled:
            filters.append(BloomFilter(path, rate, distinct, most))
    return tuple(filters)


def _rate(key: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < 1:
        raise ConfigError(f"table property {key} must be a number between 0 and 1, not {text!r}")
    return rate
