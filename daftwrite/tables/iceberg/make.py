"""Tables that appear, or take another's place, together with their first snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.sorting import SortOrder
from pyiceberg.table.update import (
    AddPartitionSpecUpdate,
    AddSnapshotUpdate,
    AddSortOrderUpdate,
    AssertCreate,
    AssertCurrentSchemaId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    SetDefaultSortOrderUpdate,
    SetDefaultSpecUpdate,
    SetPropertiesUpdate,
    TableUpdate,
    update_table_metadata,
)

from daftwrite.errors import ConfigError
from daftwrite.tables.base import Commit, Landed
from daftwrite.tables.iceberg.commit import Attempt, commit_attempts, content_of, ref_update, write_snapshot
from daftwrite.tables.iceberg.creation import NewTable, plan_replacement
from daftwrite.tables.iceberg.options import IcebergOptions
from daftwrite.tables.iceberg.outcome import REFUSALS, conflict, look_for
from daftwrite.tables.iceberg.properties import refuse_unsupported
from daftwrite.tables.iceberg.schema_updates import schema_updates
from daftwrite.tables.iceberg.snapshot import SnapshotBuilder

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CreateTableTransaction
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["TableMaker", "TableReplacer"]


class TableMaker:
    """Makes a table and its first snapshot in one commit, and its namespaces before.

    Args:
        catalog: where the table comes to be.
        identifier: namespace and name.
        made: schema, partitioning, sort order and properties.
    """

    def __init__(self, catalog: Catalog, identifier: tuple[str, ...], made: NewTable) -> None:
        self._catalog: Any = catalog
        self._identifier = identifier
        self._made = made
        self._transaction: CreateTableTransaction | None = None
        self._namespaces: list[tuple[str, ...]] = []

    def stage(self) -> PyIcebergTable:
        """The table as it will be; nobody else sees it yet."""
        self._make_namespaces()
        transaction = self._catalog.create_table_transaction(
            self._identifier,
            schema=self._made.schema,
            partition_spec=self._made.spec,
            sort_order=self._made.sort_order,
            properties=self._made.properties,
        )
        self._transaction = transaction
        table: PyIcebergTable = transaction._table
        return table

    def commit(self, commit: Commit) -> Landed:
        """Make the table with the files in it; without files it becomes an empty table.

        Raises:
            CommitConflict: when the catalog refuses, as it does when another table came first.
            CommitStateUnknown: when no answer tells whether the commit landed.
        """
        assert self._transaction is not None
        table = self._transaction._table
        metadata = table.metadata
        updates: list[TableUpdate] = list(self._transaction._updates)
        builder = None
        snapshot_id = None
        if commit.all_files:
            snapshot_id = metadata.new_snapshot_id()
            builder = SnapshotBuilder(
                metadata, metadata.schema(), table.io, table.location_provider(), snapshot_id, None, content_of(commit)
            )
            updates.append(AddSnapshotUpdate(snapshot=write_snapshot(builder, commit)))
            if not commit.plan.details.stage_only:
                updates.append(ref_update(metadata, commit.plan.details.branch, snapshot_id))
        try:
            table._do_commit(updates=tuple(updates), requirements=(AssertCreate(),))
        except Exception as error:
            uuid = metadata.table_uuid
            if not look_for(
                table,
                commit,
                error,
                lambda fresh: fresh.metadata.table_uuid == uuid,
                certain=isinstance(error, REFUSALS),
            ):
                if builder is not None:
                    builder.discard()
                raise conflict(commit, f"the catalog refused to create the table: {error}") from error
        self._namespaces.clear()
        return Landed(snapshot_id)

    def drop_namespaces(self) -> None:
        """Drop the namespaces that were made, as far as they are empty."""
        while self._namespaces:
            try:
                self._catalog.drop_namespace(self._namespaces.pop())
            except (NamespaceNotEmptyError, NoSuchNamespaceError):
                continue

    def _make_namespaces(self) -> None:
        for depth in range(1, len(self._identifier)):
            namespace = self._identifier[:depth]
            if self._catalog.namespace_exists(namespace):
                continue
            try:
                self._catalog.create_namespace(namespace)
            except Exception:
                # Another writer may have made it just now, whatever this catalog then raises.
                if not self._catalog.namespace_exists(namespace):
                    raise
                continue
            self._namespaces.append(namespace)


class TableReplacer:
    """Replaces a table's schema, partitioning, sort order and rows in one commit; its history stays.

    Args:
        name: the table's.
        metadata: the table as it is.
        source: the schema of the data.
        options: what the write is asked to do.
        coerce_timestamps: as in `plan_projection`.
    """

    def __init__(
        self,
        name: str,
        metadata: TableMetadata,
        source: pa.Schema,
        options: IcebergOptions,
        coerce_timestamps: str | None,
    ) -> None:
        self._before = metadata
        made = plan_replacement(metadata, source, options, coerce_timestamps)
        self._updates = _replacing(metadata, made)
        self.metadata = update_table_metadata(metadata, tuple(self._updates))
        refuse_unsupported(name, self.metadata.format_version, self.metadata.properties)

    def commit(self, table: PyIcebergTable, commit: Commit) -> Landed:
        """Let the new table take the old one's place.

        Raises:
            CommitConflict: when the old table's schema or partitioning changed meanwhile.
            CommitStateUnknown: when no answer tells whether the commit landed.
        """
        before = self._before
        snapshot_id = before.new_snapshot_id()

        def attempt() -> Attempt:
            metadata = table.metadata
            if str(metadata.table_uuid) != commit.plan.details.table_uuid:
                raise conflict(commit, "another table has its name now")
            moved = (metadata.schemas, metadata.partition_specs, metadata.sort_orders) != (
                before.schemas,
                before.partition_specs,
                before.sort_orders,
            )
            if moved:
                raise conflict(commit, "its schema, partitioning or sort order changed meanwhile")
            after = update_table_metadata(metadata, tuple(self._updates))
            updates = list(self._updates)
            if MAIN_BRANCH in metadata.refs:
                updates.append(RemoveSnapshotRefUpdate(ref_name=MAIN_BRANCH))
            builder = SnapshotBuilder(
                after, after.schema(), table.io, table.location_provider(), snapshot_id, None, content_of(commit)
            )
            updates.append(AddSnapshotUpdate(snapshot=write_snapshot(builder, commit)))
            updates.append(ref_update(metadata, MAIN_BRANCH, snapshot_id))
            return Attempt(builder, updates, _assertions(metadata))

        commit_attempts(table, commit, attempt)
        return Landed(snapshot_id)


def _assertions(metadata: TableMetadata) -> Sequence[Any]:
    head = metadata.refs.get(MAIN_BRANCH)
    return (
        AssertTableUUID(uuid=metadata.table_uuid),
        AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
        AssertLastAssignedFieldId(last_assigned_field_id=metadata.last_column_id),
        AssertLastAssignedPartitionId(last_assigned_partition_id=metadata.last_partition_id),
        AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=None if head is None else head.snapshot_id),
    )


def _replacing(metadata: TableMetadata, made: NewTable) -> list[TableUpdate]:
    _, updates = schema_updates(metadata, made.schema)
    updates += _spec_updates(metadata, made.spec)
    updates += _order_updates(metadata, made.sort_order)
    properties = {key: value for key, value in made.properties.items() if metadata.properties.get(key) != value}
    if properties.pop("format-version", str(metadata.format_version)) != str(metadata.format_version):
        raise ConfigError(f"the table has format version {metadata.format_version}; upgrade it before it is replaced")
    if properties:
        updates.append(SetPropertiesUpdate(updates=properties))
    return updates


def _spec_updates(metadata: TableMetadata, wanted: PartitionSpec) -> list[TableUpdate]:
    def shape(spec: PartitionSpec) -> list[tuple[int, str, str]]:
        return [(field.source_id, str(field.transform), field.name) for field in spec.fields]

    for known in metadata.partition_specs:
        if shape(known) == shape(wanted):
            if known.spec_id == metadata.default_spec_id:
                return []
            return [SetDefaultSpecUpdate(spec_id=known.spec_id)]
    if metadata.format_version == 1:
        raise ConfigError("the table has format version 1, whose partitioning can't be replaced; upgrade it to 2 first")
    ids = {
        (field.source_id, str(field.transform)): field.field_id
        for spec in metadata.partition_specs
        for field in spec.fields
    }
    following = (metadata.last_partition_id or PARTITION_FIELD_ID_START - 1) + 1
    fields = []
    for field in wanted.fields:
        number = ids.get((field.source_id, str(field.transform)))
        if number is None:
            number, following = following, following + 1
        fields.append(PartitionField(field.source_id, number, field.transform, field.name))
    spec_id = max(spec.spec_id for spec in metadata.partition_specs) + 1
    return [AddPartitionSpecUpdate(spec=PartitionSpec(*fields, spec_id=spec_id)), SetDefaultSpecUpdate(spec_id=-1)]


def _order_updates(metadata: TableMetadata, wanted: SortOrder) -> list[TableUpdate]:
    for known in metadata.sort_orders:
        if known.fields == wanted.fields:
            if known.order_id == metadata.default_sort_order_id:
                return []
            return [SetDefaultSortOrderUpdate(sort_order_id=known.order_id)]
    if not wanted.fields:
        return [AddSortOrderUpdate(sort_order=SortOrder(order_id=0)), SetDefaultSortOrderUpdate(sort_order_id=0)]
    order_id = max((order.order_id for order in metadata.sort_orders), default=0) + 1
    order = SortOrder(*wanted.fields, order_id=order_id)
    return [AddSortOrderUpdate(sort_order=order), SetDefaultSortOrderUpdate(sort_order_id=-1)]
