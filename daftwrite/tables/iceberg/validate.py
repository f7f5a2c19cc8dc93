"""Whether what others committed meanwhile lets an overwrite still be what it was planned to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from daftwrite.tables.iceberg.manifests import read_entries

__all__ = ["change_since"]


def change_since(
    metadata: TableMetadata,
    io: FileIO,
    base: Snapshot | None,
    head: Snapshot | None,
    removed: frozenset[str],
    matters: Callable[[DataFile], bool] | None,
) -> str | None:
    """What was committed to a branch since a snapshot and stands against an overwrite, in words; None if nothing does.

    Args:
        metadata: the table as it is now.
        io: reads manifests.
        base: the snapshot that the overwrite looked at.
        head: the branch's head now.
        removed: the files that the overwrite takes out.
        matters: tells of an added file whether the overwrite would have replaced rows of it; None to let all pass.
    """
    if base is not None and (head is None or base.snapshot_id not in _ancestors(metadata, head)):
        return f"the branch no longer contains snapshot {base.snapshot_id}, which the overwrite was planned on"
    for snapshot in _since(metadata, base, head):
        for content, entry in _changes(snapshot, io):
            file = entry.data_file
            if content == ManifestContent.DELETES:
                if removed:
                    return f"snapshot {snapshot.snapshot_id} deleted rows in files that the overwrite replaces"
            elif entry.status == ManifestEntryStatus.DELETED:
                if file.file_path in removed:
                    return f"snapshot {snapshot.snapshot_id} removed {file.file_path}, which the overwrite replaces"
            elif _adds_rows(snapshot) and matters is not None and matters(file):
                return f"snapshot {snapshot.snapshot_id} added {file.file_path} with rows that the overwrite replaces"
    return None


def _ancestors(metadata: TableMetadata, head: Snapshot) -> set[int]:
    return {snapshot.snapshot_id for snapshot in _since(metadata, None, head)}


def _since(metadata: TableMetadata, base: Snapshot | None, head: Snapshot | None) -> Iterator[Snapshot]:
    while head is not None and (base is None or head.snapshot_id != base.snapshot_id):
        yield head
        parent = head.parent_snapshot_id
        head = None if parent is None else metadata.snapshot_by_id(parent)


def _changes(snapshot: Snapshot, io: FileIO) -> Iterator[tuple[ManifestContent, ManifestEntry]]:
    for manifest in snapshot.manifests(io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in read_entries(manifest, io, discard_deleted=False):
            if entry.status != ManifestEntryStatus.EXISTING and entry.snapshot_id == snapshot.snapshot_id:
                yield manifest.content, entry


def _adds_rows(snapshot: Snapshot) -> bool:
    # A compaction adds files with rows that were there before.
    return snapshot.summary is None or snapshot.summary.operation != Operation.REPLACE
