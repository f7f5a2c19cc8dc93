"""Building one snapshot: added files, removed files, manifests, manifest list and summary."""

from __future__ import annotations

import itertools
import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import LocationProvider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot, SnapshotSummaryCollector, Summary, update_snapshot_summaries

from daftwrite.errors import WriteError
from daftwrite.tables.iceberg.manifests import manifest_writer, read_entries, schema_of_spec
from daftwrite.tables.iceberg.merging import merge_manifests
from daftwrite.tables.iceberg.naming import stored_partition_path
from daftwrite.tables.iceberg.properties import TableProperties

__all__ = ["SnapshotBuilder", "SnapshotContent"]

logger = logging.getLogger("daftwrite")

_SAMPLE = 64


@dataclass(frozen=True)
class SnapshotContent:
    """What a snapshot changes.

    Attributes:
        added: the new data files; each knows its spec id.
        partitions: location of a new file to the path of its partition, for the summary.
        removed: locations of data files that leave the table.
        everything_removed: whether all that was there leaves, delete files included.
        properties: goes into the summary.
    """

    added: Sequence[DataFile]
    partitions: Mapping[str, str]
    removed: frozenset[str] = frozenset()
    everything_removed: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def operation(self) -> Operation:
        """What the snapshot is in the specification's words."""
        if not self.removed:
            return Operation.APPEND
        return Operation.OVERWRITE if self.added else Operation.DELETE


class SnapshotBuilder:
    """Writes the manifests of one attempt to commit a snapshot.

    Added files stand in manifests grouped by their spec, which a table's current spec need not be.

    Args:
        metadata: the table as it is now.
        schema: the table's schema after the commit.
        io: reads and writes manifests.
        locations: names them.
        snapshot_id: the id that the snapshot will have, the same in every attempt.
        parent: the snapshot that it follows, or None.
        content: what it changes.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        schema: Schema,
        io: FileIO,
        locations: LocationProvider,
        snapshot_id: int,
        parent: Snapshot | None,
        content: SnapshotContent,
    ) -> None:
        self._metadata = metadata
        self._schema = schema
        self._io = io
        self._locations = locations
        self._snapshot_id = snapshot_id
        self._parent = parent
        self._content = content
        self._attempt = uuid.uuid4()
        self._numbers = itertools.count()
        self._written: list[str] = []
        self._properties = TableProperties(metadata.properties)
        self._summary = SnapshotSummaryCollector(self._properties.partition_summary_limit)

    def write(self) -> Snapshot:
        """Write manifests and manifest list; nothing refers to them before the catalog knows the snapshot.

        Raises:
            WriteError: when a file to remove is not in the parent snapshot.
        """
        manifests = [*self._added_manifests(), *self._kept_manifests()]
        merged = merge_manifests(self, manifests, self._properties)
        self._keep_only({manifest.manifest_path for manifest in merged})
        sequence_number = self._metadata.next_sequence_number()
        location = self._locations.new_metadata_location(f"snap-{self._snapshot_id}-0-{self._attempt}.avro")
        self._written.append(location)
        parent_id = None if self._parent is None else self._parent.snapshot_id
        with write_manifest_list(
            format_version=self._metadata.format_version,
            output_file=self._io.new_output(location),
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=parent_id,
            sequence_number=sequence_number,
            avro_compression=self._properties.manifest_compression,
        ) as writer:
            writer.add_manifests(merged)
        return Snapshot(
            snapshot_id=self._snapshot_id,
            parent_snapshot_id=parent_id,
            manifest_list=location,
            sequence_number=sequence_number,
            summary=self._build_summary(),
            schema_id=self._schema.schema_id,
        )

    def discard(self) -> None:
        """Delete the manifests and lists written, once it is certain that no snapshot refers to them."""
        while self._written:
            self._delete(self._written.pop())

    def _keep_only(self, used: set[str]) -> None:
        for path in [path for path in self._written if path not in used]:
            self._delete(path)
            self._written.remove(path)

    def _delete(self, path: str) -> None:
        try:
            self._io.delete(path)
        except FileNotFoundError:
            return
        except Exception as error:
            logger.warning("could not delete %s: %s", path, error)

    def manifest(self, spec_id: int, entries: Iterable[ManifestEntry], schema: Schema | None = None) -> ManifestFile:
        """Write one manifest of entries that have their status."""
        writer = self._writer(spec_id, schema or self._schema)
        with writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """The entries of a manifest; those of removed files, too, where this snapshot removed them."""
        ours = manifest.added_snapshot_id == self._snapshot_id
        return read_entries(manifest, self._io, discard_deleted=not ours)

    @property
    def snapshot_id(self) -> int:
        """The snapshot's id."""
        return self._snapshot_id

    def _writer(self, spec_id: int, schema: Schema) -> ManifestWriter:
        location = self._locations.new_metadata_location(f"{self._attempt}-m{next(self._numbers)}.avro")
        self._written.append(location)
        spec = self._metadata.specs()[spec_id]
        return manifest_writer(
            self._metadata.format_version,
            spec,
            schema_of_spec(self._metadata, spec, schema),
            self._io.new_output(location),
            self._snapshot_id,
            self._properties.manifest_compression,
        )

    def _added_manifests(self) -> Iterator[ManifestFile]:
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in self._content.added:
            by_spec[file.spec_id].append(file)
            self._summary.metrics.add_file(file)
            if len(file.partition) > 0:
                self._summary.partition_metrics[self._content.partitions[file.file_path]].add_file(file)
        for spec_id, files in sorted(by_spec.items()):
            yield from self._rolled(spec_id, files)

    def _rolled(self, spec_id: int, files: list[DataFile]) -> Iterator[ManifestFile]:
        """Manifests of about the target size; an entry's length is learned from the first ones."""
        target = self._properties.manifest_target_size
        position = 0
        per_entry = 0.0
        while position < len(files):
            count = len(files) - position
            if per_entry:
                count = min(count, max(1, int(target / per_entry)))
            elif count > _SAMPLE:
                sample = self._entry_nbytes(spec_id, files[:_SAMPLE])
                per_entry = max(1.0, sample)
                continue
            yield self.manifest(spec_id, [self._added(file) for file in files[position : position + count]])
            position += count

    def _entry_nbytes(self, spec_id: int, files: list[DataFile]) -> float:
        manifest = self.manifest(spec_id, [self._added(file) for file in files])
        return manifest.manifest_length / len(files)

    def _added(self, file: DataFile) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED,
            snapshot_id=self._snapshot_id,
            sequence_number=None,
            file_sequence_number=None,
            data_file=file,
        )

    def _kept_manifests(self) -> Iterator[ManifestFile]:
        if self._parent is None:
            return
        missing = set(self._content.removed)
        for manifest in self._parent.manifests(self._io):
            if not self._content.removed:
                if manifest.has_added_files() or manifest.has_existing_files():
                    yield manifest
            elif manifest.content == ManifestContent.DELETES:
                if self._content.everything_removed:
                    self._forget_deletes(manifest)
                else:
                    yield manifest
            else:
                yield from self._without_removed(manifest, missing)
        if missing:
            raise WriteError(f"data files to remove are not in the table any more: {', '.join(sorted(missing)[:3])}")

    def _forget_deletes(self, manifest: ManifestFile) -> None:
        for entry in read_entries(manifest, self._io):
            self._summary.metrics.remove_file(entry.data_file)

    def _without_removed(self, manifest: ManifestFile, missing: set[str]) -> Iterator[ManifestFile]:
        entries = read_entries(manifest, self._io)
        found = [entry for entry in entries if entry.data_file.file_path in missing]
        if not found:
            if entries:
                yield manifest
            return
        spec = self._metadata.specs()[manifest.partition_spec_id]
        rewritten = []
        for entry in entries:
            status = ManifestEntryStatus.EXISTING
            if entry.data_file.file_path in missing:
                status = ManifestEntryStatus.DELETED
                self._count_removed(entry.data_file, spec)
            rewritten.append(self._with_status(entry, status))
        missing -= {entry.data_file.file_path for entry in found}
        yield self.manifest(manifest.partition_spec_id, rewritten, self._metadata.schema())

    def _count_removed(self, file: DataFile, spec: PartitionSpec) -> None:
        self._summary.metrics.remove_file(file)
        if spec.fields:
            schema = schema_of_spec(self._metadata, spec, self._metadata.schema())
            path = stored_partition_path(spec, schema, file.partition)
            self._summary.partition_metrics[path].remove_file(file)

    def _with_status(self, entry: ManifestEntry, status: ManifestEntryStatus) -> ManifestEntry:
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=self._snapshot_id if status == ManifestEntryStatus.DELETED else entry.snapshot_id,
            sequence_number=entry.sequence_number,
            file_sequence_number=entry.file_sequence_number,
            data_file=entry.data_file,
        )

    def _build_summary(self) -> Summary:
        built: dict[str, Any] = {**self._summary.build(), **self._content.properties}
        previous = None if self._parent is None else self._parent.summary
        return update_snapshot_summaries(
            summary=Summary(operation=self._content.operation, **built), previous_summary=previous
        )
