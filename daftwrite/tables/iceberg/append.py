"""A fast append whose files may belong to several partition specs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from pyiceberg.manifest import DataFile, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, SnapshotSummaryCollector, Summary, update_snapshot_summaries
from pyiceberg.table.update.snapshot import _FastAppendFiles

__all__ = ["AppendFiles"]

_SUMMARY_LIMIT = "write.summary.partition-limit"


class AppendFiles(_FastAppendFiles):
    """Adds data files in manifests grouped by their spec id.

    pyiceberg writes all added files with the table's current default spec, which mis-tags files that were written under
    a spec that has since evolved.

    Args:
        transaction: the transaction to stage the snapshot in.
        properties: goes into the snapshot summary.
        partitions: location of a data file to the path of its partition.
        validate: called with the refreshed schema before pyiceberg itself tries again; raises to give up.
    """

    def __init__(
        self,
        transaction: Transaction,
        properties: Mapping[str, str],
        partitions: Mapping[str, str],
        validate: Callable[[TableMetadata], None],
    ) -> None:
        super().__init__(
            operation=Operation.APPEND,
            transaction=transaction,
            io=transaction._table.io,
            snapshot_properties=dict(properties),
        )
        self._partitions = partitions
        self._validate = validate

    def discard(self) -> None:
        """Delete the manifests and lists written so far, once it is certain that no snapshot refers to them."""
        super()._clean_all_uncommitted()

    def _clean_all_uncommitted(self) -> None:
        """Nothing: pyiceberg cleans up after refusals, also after those of a commit that had landed before."""

    def _validate_concurrency(self) -> None:
        self._validate(self._transaction.table_metadata)

    def _manifests(self) -> list[ManifestFile]:
        added, self._added_data_files = self._added_data_files, []
        try:
            existing: list[ManifestFile] = super()._manifests()
        finally:
            self._added_data_files = added
        by_spec: dict[int, list[DataFile]] = defaultdict(list)
        for file in added:
            by_spec[file.spec_id].append(file)
        return [self._manifest(spec_id, files) for spec_id, files in sorted(by_spec.items())] + existing

    def _manifest(self, spec_id: int, files: list[DataFile]) -> ManifestFile:
        with self.new_manifest_writer(self.spec(spec_id)) as writer:
            for file in files:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: dict[str, str] | Any = None) -> Summary:
        metadata = self._transaction.table_metadata
        collector = SnapshotSummaryCollector(int(metadata.properties.get(_SUMMARY_LIMIT, "0")))
        for file in self._added_data_files:
            collector.metrics.add_file(file)
            if len(file.partition) > 0:
                collector.partition_metrics[self._partitions[file.file_path]].add_file(file)
        parent = None if self._parent_snapshot_id is None else metadata.snapshot_by_id(self._parent_snapshot_id)
        return update_snapshot_summaries(
            summary=Summary(operation=self._operation, **collector.build(), **(snapshot_properties or {})),
            previous_summary=None if parent is None else parent.summary,
        )
