"""Manifests read with every partition value as it was written, and written as Avro that every reader takes.

pyiceberg's compiled Avro decoder narrows doubles to floats: 0.1 comes back as 0.10000000149011612 and 1e300 as
infinity. Files would be planned, compared and written again under partition values that are not theirs. It reads
UUIDs as such, which its filters then compare with bytes, and find none equal.

Its writer defines an Avro type again for each partition field of the same decimal, fixed or UUID type, which Avro
forbids: fastavro refuses such a manifest and DuckDB dies of it. It has no type for a partition field whose source was
dropped, and can't write the null of a required source below an optional struct.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from typing import Any

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import _SCHEMA_KEY, MAGIC, META_SCHEMA, AvroFile, AvroFileHeader, AvroOutputFile
from pyiceberg.avro.reader import DoubleReader, FixedReader, OptionReader, Reader, StructReader, UUIDReader
from pyiceberg.avro.resolver import construct_writer
from pyiceberg.io import FileIO, OutputFile
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    ManifestWriterV1,
    ManifestWriterV2,
    _inherit_from_manifest,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema, index_by_id, visit
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.transforms import VoidTransform
from pyiceberg.types import DecimalType, FixedType, UUIDType
from pyiceberg.utils.schema_conversion import AvroType, ConvertSchemaToAvro

from daftwrite.tables.iceberg.predicates import nullable_schema

__all__ = ["exact_manifests", "manifest_writer", "read_entries", "schema_of_spec"]

_DOUBLE = struct.Struct("<d")


def exact_manifests(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """The manifests of a snapshot for pyiceberg's planner, to which each gives what `read_entries` gives."""
    return [_ExactManifestFile(*manifest._data) for manifest in snapshot.manifests(io)]


def read_entries(manifest: ManifestFile, io: FileIO, *, discard_deleted: bool = True) -> list[ManifestEntry]:
    """The entries of a manifest, with what they inherit from it.

    Args:
        manifest: the manifest.
        io: reads it.
        discard_deleted: leave out the entries of files that its snapshot removed.
    """
    reader = _ExactAvroFile(
        io.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    )
    with reader as entries:
        return [
            _inherit_from_manifest(entry, manifest)
            for entry in entries
            if not discard_deleted or entry.status != ManifestEntryStatus.DELETED
        ]


def manifest_writer(
    format_version: int,
    spec: PartitionSpec,
    schema: Schema,
    output: OutputFile,
    snapshot_id: int,
    compression: AvroCompressionCodec,
) -> ManifestWriter:
    """A writer of one manifest of data files.

    Args:
        format_version: the table's, 1 or 2.
        spec: the files' spec.
        schema: names and types the spec's sources.
        output: the manifest.
        snapshot_id: the snapshot that the manifest is written for.
        compression: Avro's name of the codec.
    """
    kind = _WriterV1 if format_version == 1 else _WriterV2
    return kind(spec, schema, output, snapshot_id, compression)


def schema_of_spec(metadata: TableMetadata, spec: PartitionSpec, schema: Schema) -> Schema:
    """The schema that names and types a spec's sources: the given one, or the last that still had those it lacks.

    Args:
        metadata: knows older schemas.
        spec: the spec.
        schema: the schema preferred.
    """
    sources = {field.source_id for field in spec.fields if not isinstance(field.transform, VoidTransform)}
    for candidate in (schema, *reversed(metadata.schemas)):
        if sources <= index_by_id(candidate).keys():
            return candidate
    return schema


class _ExactManifestFile(ManifestFile):
    def fetch_manifest_entry(self, io: FileIO, discard_deleted: bool = True) -> list[ManifestEntry]:
        return read_entries(self, io, discard_deleted=discard_deleted)


class _ExactAvroFile(AvroFile[ManifestEntry]):
    def __enter__(self) -> AvroFile[ManifestEntry]:
        super().__enter__()
        self.reader = _exact(self.reader)
        return self


class _ExactDoubleReader(DoubleReader):
    def read(self, decoder: BinaryDecoder) -> float:
        (value,) = _DOUBLE.unpack(decoder.read(_DOUBLE.size))
        return float(value)


_EXACT_DOUBLES = _ExactDoubleReader()  # type: ignore[no-untyped-call]  # pyiceberg's Reader has no annotations here
_UUID_BYTES = FixedReader(16)


def _exact(reader: Reader) -> Any:
    if isinstance(reader, DoubleReader):
        return _EXACT_DOUBLES
    if isinstance(reader, UUIDReader):
        return _UUID_BYTES
    if isinstance(reader, OptionReader):
        return OptionReader(_exact(reader.option))
    if isinstance(reader, StructReader):
        fields = tuple((position, _exact(field)) for position, field in reader.field_readers)
        return StructReader(fields, reader.create_struct, reader.struct)
    return reader


class _WriterV1(ManifestWriterV1):
    def __init__(self, spec: PartitionSpec, schema: Schema, *rest: Any) -> None:
        super().__init__(spec, nullable_schema(schema), *rest)
        self._described = schema

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "schema": self._described.model_dump_json()}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return _output(super().new_writer())


class _WriterV2(ManifestWriterV2):
    def __init__(self, spec: PartitionSpec, schema: Schema, *rest: Any) -> None:
        super().__init__(spec, nullable_schema(schema), *rest)
        self._described = schema

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "schema": self._described.model_dump_json()}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        return _output(super().new_writer())


def _output(made: AvroOutputFile[ManifestEntry]) -> AvroOutputFile[ManifestEntry]:
    output = _ValidAvroOutputFile(made.output_file, made.file_schema, made.schema_name, None, made.metadata)
    output.writer = made.writer
    return output


class _ValidAvroOutputFile(AvroOutputFile[ManifestEntry]):
    def _write_header(self) -> None:
        schema = json.dumps(visit(self.file_schema, _UniqueNames(self.schema_name)))
        header = AvroFileHeader(MAGIC, {**self.metadata, _SCHEMA_KEY: schema}, self.sync_bytes)
        construct_writer(META_SCHEMA).write(self.encoder, header)


class _UniqueNames(ConvertSchemaToAvro):
    def __init__(self, schema_name: str | None) -> None:
        super().__init__(schema_name)
        self._named: Counter[str] = Counter()

    def visit_fixed(self, fixed_type: FixedType) -> AvroType:
        return self._unique(super().visit_fixed(fixed_type))

    def visit_decimal(self, decimal_type: DecimalType) -> AvroType:
        return self._unique(super().visit_decimal(decimal_type))

    def visit_uuid(self, uuid_type: UUIDType) -> AvroType:
        return self._unique(super().visit_uuid(uuid_type))

    def _unique(self, avro: Any) -> AvroType:
        name = avro["name"]
        before = self._named[name]
        self._named[name] += 1
        return {**avro, "name": f"{name}_{before}"} if before else avro
