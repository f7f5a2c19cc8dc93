"""Committing finished files to an Iceberg table that exists: landed once, refused, or unknown."""

from __future__ import annotations

import itertools
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from daftwrite.errors import WriteError
from daftwrite.tables.base import Commit, Landed
from daftwrite.tables.iceberg.data_file import iceberg_data_file, leaf_fields
from daftwrite.tables.iceberg.evolve import SchemaMoved, graft, schema_problem
from daftwrite.tables.iceberg.naming import partition_path
from daftwrite.tables.iceberg.outcome import (
    REFUSALS,
    WORTH_A_RETRY,
    WRITE_ID_PROPERTY,
    conflict,
    has_landed,
    look_for,
    refresh,
)
from daftwrite.tables.iceberg.prepare import IcebergDetails
from daftwrite.tables.iceberg.properties import TableProperties
from daftwrite.tables.iceberg.replace import Replacement
from daftwrite.tables.iceberg.schema_updates import schema_updates
from daftwrite.tables.iceberg.snapshot import SnapshotBuilder, SnapshotContent
from daftwrite.tables.iceberg.validate import change_since

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["Attempt", "branch_head", "commit_attempts", "content_of", "land", "ref_update", "write_snapshot"]

logger = logging.getLogger("daftwrite")


class _AssertNoRef(AssertRefSnapshotId):
    """Asserts that a ref is new, also in a table without snapshots, where pyiceberg refuses any but main."""

    # pyiceberg's requirements have this name for it, which pydantic's models once used otherwise.
    def validate(self, base_metadata: TableMetadata | None) -> None:  # type: ignore[override]
        if base_metadata is None or self.ref in base_metadata.refs:
            raise CommitFailedException(f"branch {self.ref} was created concurrently, or the table is gone")


@dataclass(frozen=True)
class Attempt:
    """One try to commit: what was written for it, and what the catalog is asked."""

    builder: SnapshotBuilder | None
    updates: Sequence[TableUpdate]
    requirements: Sequence[TableRequirement]


def land(table: PyIcebergTable, commit: Commit, replacement: Replacement | None) -> Landed:
    """Make the files part of the table in one snapshot.

    Raises:
        CommitConflict: when the table is gone, was replaced, or moved on in a way that the files don't fit.
        CommitStateUnknown: when no answer tells whether the commit landed.
    """
    details: IcebergDetails = commit.plan.details
    removed = frozenset() if replacement is None else replacement.removed
    if not commit.all_files and not removed and details.schema == details.base_schema:
        return Landed(None)
    snapshot_id = table.metadata.new_snapshot_id()

    def attempt() -> Attempt:
        metadata = table.metadata
        _check_identity(metadata, commit)
        schema, updates = schema_updates(metadata, _schema_after(metadata, commit))
        head = branch_head(metadata, details.branch)
        everything = False
        if replacement is not None:
            _check_replacement(table, commit, head, replacement)
            everything = replacement.choice.everything and head == replacement.snapshot
        content = content_of(commit, removed, everything=everything)
        builder = SnapshotBuilder(metadata, schema, table.io, table.location_provider(), snapshot_id, head, content)
        updates.append(AddSnapshotUpdate(snapshot=write_snapshot(builder, commit)))
        if not details.stage_only:
            updates.append(ref_update(metadata, details.branch, snapshot_id))
        return Attempt(builder, updates, _requirements(metadata, details))

    commit_attempts(table, commit, attempt)
    return Landed(snapshot_id, tuple(sorted(removed)))


def commit_attempts(table: PyIcebergTable, commit: Commit, attempt: Callable[[], Attempt]) -> None:
    """Try until the commit lands, is refused for good, or nobody can tell; see `commit.retry.*`.

    Args:
        table: the table; refreshed before each attempt.
        commit: for messages.
        attempt: makes an attempt for the table as it is.
    """
    details: IcebergDetails = commit.plan.details
    properties = TableProperties(table.metadata.properties)
    wait, longest = properties.retry_wait_seconds

    def landed(fresh: PyIcebergTable) -> bool:
        return has_landed(fresh, details.table_uuid, commit.plan.write_id)

    begun = time.monotonic()
    for number in itertools.count():
        refresh(table, commit)
        tried = attempt()
        try:
            table._do_commit(updates=tuple(tried.updates), requirements=tuple(tried.requirements))
            return
        except Exception as error:
            fresh = look_for(table, commit, error, landed, certain=isinstance(error, REFUSALS))
            if fresh is not None:
                table.metadata, table.metadata_location = fresh.metadata, fresh.metadata_location
                return
            if tried.builder is not None:
                tried.builder.discard()
            spent = time.monotonic() - begun > properties.retry_total_seconds
            if not isinstance(error, WORTH_A_RETRY) or number >= properties.retries or spent:
                raise conflict(commit, f"the catalog refused the commit: {error}") from error
            pause = min(wait * 2**number, longest) * random.uniform(0.5, 1.5)
            logger.info("commit to %s was refused (%s), trying again in %.1f s", commit.plan.target, error, pause)
            time.sleep(pause)


def content_of(commit: Commit, removed: frozenset[str] = frozenset(), *, everything: bool = False) -> SnapshotContent:
    """What the snapshot of a commit changes."""
    details: IcebergDetails = commit.plan.details
    leaves = leaf_fields(details.schema)
    files: list[IcebergDataFile] = [
        iceberg_data_file(file, leaves, details.spec_id, details.metrics) for file in commit.all_files
    ]
    partitions = {file.path: partition_path(tuple(file.partition.items())) for file in commit.all_files}
    properties = {**details.snapshot_properties, WRITE_ID_PROPERTY: commit.plan.write_id}
    if details.replaces_partitions:
        properties["replace-partitions"] = "true"
    return SnapshotContent(files, partitions, removed, everything, properties)


def write_snapshot(builder: SnapshotBuilder, commit: Commit) -> Snapshot:
    """Write a snapshot's manifests, or leave none of them.

    Raises:
        WriteError: when they can't be written.
    """
    try:
        return builder.write()
    except Exception as error:
        builder.discard()
        raise WriteError(f"can't write the manifests of table {commit.plan.target}: {error}") from error


def branch_head(metadata: TableMetadata, branch: str) -> Snapshot | None:
    """The snapshot that a write to a branch follows: the branch's head, or main's for a branch that is new."""
    return metadata.snapshot_by_name(branch) or metadata.snapshot_by_name(MAIN_BRANCH)


def ref_update(metadata: TableMetadata, branch: str, snapshot_id: int) -> TableUpdate:
    """Let a branch point to a snapshot; what it says of retention stays."""
    known = metadata.refs.get(branch)
    return SetSnapshotRefUpdate(
        ref_name=branch,
        type=SnapshotRefType.BRANCH,
        snapshot_id=snapshot_id,
        max_ref_age_ms=None if known is None else known.max_ref_age_ms,
        max_snapshot_age_ms=None if known is None else known.max_snapshot_age_ms,
        min_snapshots_to_keep=None if known is None else known.min_snapshots_to_keep,
    )


def _requirements(metadata: TableMetadata, details: IcebergDetails) -> list[TableRequirement]:
    required: list[TableRequirement] = [
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
    ]
    if details.schema != details.base_schema:
        required.append(AssertLastAssignedFieldId(last_assigned_field_id=metadata.last_column_id))
    if not details.stage_only:
        known = metadata.refs.get(details.branch)
        if known is None:
            required.append(_AssertNoRef(ref=details.branch))
        else:
            required.append(AssertRefSnapshotId(ref=details.branch, snapshot_id=known.snapshot_id))
    return required


def _check_identity(metadata: TableMetadata, commit: Commit) -> None:
    details: IcebergDetails = commit.plan.details
    if str(metadata.table_uuid) != details.table_uuid:
        raise conflict(commit, "another table has its name now")
    if details.spec_id not in metadata.specs():
        raise conflict(commit, f"partition spec {details.spec_id} was dropped meanwhile")
    ref = metadata.refs.get(details.branch)
    if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise conflict(commit, f"'{details.branch}' is a tag")


def _schema_after(metadata: TableMetadata, commit: Commit) -> Schema:
    """The schema that the table has with this commit."""
    details: IcebergDetails = commit.plan.details
    current = metadata.schema()
    if details.schema == details.base_schema:
        problem = schema_problem(details.schema, current)
        if problem:
            raise conflict(commit, f"its schema changed meanwhile: {problem}")
        return current
    if details.replaces_schema:
        if current != details.base_schema:
            raise conflict(commit, "its schema changed meanwhile, and this write replaces it")
        return details.schema
    return _grafted(metadata, commit, details)


def _grafted(metadata: TableMetadata, commit: Commit, details: IcebergDetails) -> Schema:
    names = {number: str(schema.find_column_name(number)) for schema in metadata.schemas for number in schema.field_ids}
    try:
        grafted = graft(metadata.schema(), details.schema, details.base_schema, names)
    except SchemaMoved as error:
        raise conflict(commit, f"its schema changed meanwhile: {error}") from error
    problem = schema_problem(details.schema, grafted)
    if problem:
        raise conflict(commit, f"its schema changed meanwhile: {problem}")
    return grafted


def _check_replacement(table: PyIcebergTable, commit: Commit, head: Snapshot | None, replacement: Replacement) -> None:
    operation = "update" if commit.files else "delete"
    serializable = TableProperties(table.metadata.properties).serializable(operation)
    matters = replacement.choice.may_match if serializable else None
    change = change_since(table.metadata, table.io, replacement.snapshot, head, replacement.removed, matters)
    if change is not None:
        raise conflict(commit, change)
