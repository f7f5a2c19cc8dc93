"""Reading manifests with every partition value as it was written.

pyiceberg's compiled Avro decoder narrows doubles to floats: 0.1 comes back as 0.10000000149011612 and 1e300 as
infinity. Files would be planned, compared and written again under partition values that are not theirs.
"""

from __future__ import annotations

import struct
from typing import Any

from pyiceberg.avro.decoder import BinaryDecoder
from pyiceberg.avro.file import AvroFile
from pyiceberg.avro.reader import DoubleReader, OptionReader, Reader, StructReader
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    _inherit_from_manifest,
)
from pyiceberg.table.snapshots import Snapshot

__all__ = ["read_entries", "read_manifests"]

_DOUBLE = struct.Struct("<d")


def read_manifests(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """The manifests of a snapshot; `fetch_manifest_entry` of each gives what `read_entries` gives."""
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


def _exact(reader: Reader) -> Any:
    if isinstance(reader, DoubleReader):
        return _EXACT_DOUBLES
    if isinstance(reader, OptionReader):
        return OptionReader(_exact(reader.option))
    if isinstance(reader, StructReader):
        fields = tuple((position, _exact(field)) for position, field in reader.field_readers)
        return StructReader(fields, reader.create_struct, reader.struct)
    return reader
