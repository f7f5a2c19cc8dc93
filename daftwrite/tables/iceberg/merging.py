"""Merging small manifests while a snapshot is built (`commit.manifest-merge.enabled`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus, ManifestFile

from daftwrite.tables.iceberg.properties import TableProperties

if TYPE_CHECKING:
    from daftwrite.tables.iceberg.snapshot import SnapshotBuilder

__all__ = ["merge_manifests"]


def merge_manifests(
    builder: SnapshotBuilder, manifests: Sequence[ManifestFile], properties: TableProperties
) -> list[ManifestFile]:
    """The manifests of a snapshot, small ones of the same spec merged up to the target size.

    As in Iceberg's own merge append, the bin that holds the newest manifest is merged only when it has
    `commit.manifest.min-count-to-merge` manifests; bins of older ones are merged as soon as they are made.
    """
    data = [manifest for manifest in manifests if manifest.content == ManifestContent.DATA]
    if not properties.manifest_merge or len(data) < 2:
        return list(manifests)
    merged = [manifest for manifest in manifests if manifest.content != ManifestContent.DATA]
    newest = data[0]
    groups: dict[int, list[ManifestFile]] = defaultdict(list)
    for manifest in data:
        groups[manifest.partition_spec_id].append(manifest)
    result: list[ManifestFile] = []
    for spec_id, group in sorted(groups.items(), reverse=True):
        for bin_ in _bins(group, properties.manifest_target_size):
            few = newest in bin_ and len(bin_) < properties.manifest_min_count_to_merge
            if len(bin_) == 1 or few:
                result += bin_
            else:
                result.append(builder.manifest(spec_id, _entries(builder, bin_)))
    return result + merged


def _bins(manifests: list[ManifestFile], target: int) -> list[list[ManifestFile]]:
    """Neighbours up to the target size together, filled from the oldest end so that the newest bin grows."""
    bins: list[list[ManifestFile]] = []
    size = target
    for manifest in reversed(manifests):
        if size + manifest.manifest_length > target:
            bins.append([])
            size = 0
        bins[-1].insert(0, manifest)
        size += manifest.manifest_length
    return bins[::-1]


def _entries(builder: SnapshotBuilder, manifests: list[ManifestFile]) -> Iterator[ManifestEntry]:
    for manifest in manifests:
        for entry in builder.entries(manifest):
            ours = entry.snapshot_id == builder.snapshot_id
            status = entry.status if ours else ManifestEntryStatus.EXISTING
            if status == ManifestEntryStatus.DELETED and not ours:
                continue
            added = status == ManifestEntryStatus.ADDED
            yield ManifestEntry.from_args(
                status=status,
                snapshot_id=entry.snapshot_id,
                sequence_number=None if added else entry.sequence_number,
                file_sequence_number=None if added else entry.file_sequence_number,
                data_file=entry.data_file,
            )
