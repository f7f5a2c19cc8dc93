"""An Iceberg table as the target of a write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from daftwrite.catalog.iceberg import refuse_memory_of_one_thread, resolve_identifier
from daftwrite.errors import ConfigError, DaftwriteError, DataError, TableNotFound, WriteError
from daftwrite.explanation import Explanation
from daftwrite.pipeline.resources import Resources
from daftwrite.plan import WritePlan
from daftwrite.result import DataFile
from daftwrite.storage.base import Storage
from daftwrite.storage.fsspec import FsspecStorage
from daftwrite.storage.local import LocalStorage, local_path
from daftwrite.tables.base import Commit, Landed, WriteOptions
from daftwrite.tables.iceberg.commit import branch_head, land
from daftwrite.tables.iceberg.creation import check_matches, plan_new_table, unmade_metadata
from daftwrite.tables.iceberg.data_file import MetricsModes
from daftwrite.tables.iceberg.explain import explain_write
from daftwrite.tables.iceberg.file_system import table_file_system
from daftwrite.tables.iceberg.filters import RowFilter
from daftwrite.tables.iceberg.make import TableMaker, TableReplacer
from daftwrite.tables.iceberg.options import IcebergOptions
from daftwrite.tables.iceberg.prepare import (
    IcebergDetails,
    kept_projection,
    partition_fields_of,
    plan_write,
    planned_schema,
)
from daftwrite.tables.iceberg.properties import TableProperties, refuse_unsupported
from daftwrite.tables.iceberg.replace import FilterChoice, PartitionChoice, Replacement
from daftwrite.tables.iceberg.types import arrow_schema

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["IcebergTable"]

T = TypeVar("T")


class IcebergTable:
    """One write to an Iceberg table that exists, or that the write makes or replaces.

    Args:
        table: a pyiceberg table, or an identifier.
        catalog: where to look an identifier up; None for the configured or embedded catalog.
        options: what the write is asked to do.
    """

    def __init__(self, table: PyIcebergTable | str, catalog: Catalog | None, options: IcebergOptions) -> None:
        self._given = table
        self._catalog = catalog
        self._options = options
        self._table: PyIcebergTable | None = None
        self._identifier: tuple[str, ...] = ()
        self._maker: TableMaker | None = None
        self._replacer: TableReplacer | None = None
        self._replacement: Replacement | None = None

    @property
    def name(self) -> str:
        """See `Table.name`."""
        return ".".join(self._identifier)

    async def check(self, resources: Resources) -> bool:
        """Load the table; see `Table.check`."""
        await resources.blocking(lambda: self._load(create=bool(self._options.create)))
        return True

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Plan the write; see `Table.prepare`."""
        return await resources.blocking(lambda: self._guarded(lambda: self._prepare(schema, options)))

    def storage(self, plan: WritePlan, resources: Resources) -> Storage:
        """Local files, or the file system that the table's own properties and credentials open; see `Table.storage`."""
        assert self._table is not None
        location = self._table.location_provider().new_data_location("x")
        if local_path(location) is not None:
            return LocalStorage(resources.blocking)
        return FsspecStorage(table_file_system(self._table, location), resources.blocking)

    def refuse_empty(self) -> None:
        """See `Table.refuse_empty`."""
        if self._options.mode == "overwrite" and not self._options.allow_empty:
            raise DataError(
                f"the source has no rows, and mode='overwrite' would leave nothing in table {self.name} in place of "
                "what it removes; pass allow_empty=True to do so"
            )

    async def kept_rows(
        self, plan: WritePlan, files: Sequence[DataFile], resources: Resources
    ) -> AsyncIterator[pa.Table]:
        """See `Table.kept_rows`."""
        if self._options.mode == "overwrite_partitions" and files:
            await resources.blocking(lambda: self._guarded(lambda: self._plan_partitions(plan, files)))
        if self._replacement is None:
            return
        rows = self._replacement.kept()
        while True:
            part = await resources.blocking(lambda: self._guarded(lambda: next(rows, None)))
            if part is None:
                return
            yield part

    async def commit(self, commit: Commit) -> Landed:
        """See `Table.commit`."""
        return await commit.resources.blocking(lambda: self._commit(commit))

    async def roll_back(self, resources: Resources) -> None:
        """Drop namespaces that were made for a table that never came; see `Table.roll_back`."""
        if self._maker is not None:
            await resources.blocking(self._maker.drop_namespaces)

    async def explain(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> Explanation:
        """See `Table.explain`."""
        return await resources.blocking(lambda: self._guarded(lambda: self._explain(schema, options)))

    def _load(self, *, create: bool) -> None:
        if isinstance(self._given, PyIcebergTable):
            self._table = self._given
            self._identifier = self._given.name()
            refuse_memory_of_one_thread(self._given.catalog)
            if self._options.mode != "append" or self._options.schema_mode or self._options.or_replace:
                # What the handle knew is no measure for what may be replaced.
                self._guarded(self._table.refresh)
        else:
            self._identifier = tuple(self._given.split("."))
            self._catalog, self._identifier = resolve_identifier(self._given, self._catalog, create=create)
            refuse_memory_of_one_thread(self._catalog)
            self._table = self._find(self._catalog)
        if self._table is not None:
            self._check_table(self._table)

    def _find(self, catalog: Catalog) -> PyIcebergTable | None:
        try:
            return catalog.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            if not self._options.create:
                raise TableNotFound(f"table {self.name} doesn't exist; pass create=True to make it") from error
            return None
        except Exception as error:
            raise WriteError(f"can't load table {self.name}: {error}") from error

    def _check_table(self, table: PyIcebergTable) -> None:
        metadata = table.metadata
        refuse_unsupported(self.name, metadata.format_version, table.properties)
        if not self._options.or_replace:
            check_matches(self.name, metadata, self._options)
        branch = self._options.branch or MAIN_BRANCH
        ref = metadata.refs.get(branch)
        if ref is not None and ref.snapshot_ref_type != SnapshotRefType.BRANCH:
            raise ConfigError(f"branch '{branch}' of table {self.name} is a tag, which can't be written to")
        audited = self._options.stage_only or branch != MAIN_BRANCH
        if TableProperties(table.properties).write_audit_publish and not audited:
            raise ConfigError(
                f"table {self.name} has write.wap.enabled=true; pass stage_only=True, or branch= to audit before main"
            )
        if self._options.mode == "overwrite_partitions" and metadata.spec().is_unpartitioned():
            raise ConfigError(f"table {self.name} is not partitioned; use mode='overwrite'")

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except DaftwriteError:
            raise
        except Exception as error:
            raise WriteError(f"can't prepare the write to {self.name}: {error}") from error

    def _details(self, metadata: TableMetadata, schema: pa.Schema, options: WriteOptions) -> IcebergDetails:
        asked = self._options
        return IcebergDetails(
            table_uuid=str(metadata.table_uuid),
            schema=planned_schema(metadata, schema, asked, options.coerce_timestamps),
            base_schema=metadata.schema(),
            spec_id=metadata.default_spec_id,
            metrics=MetricsModes(metadata.properties),
            branch=asked.branch or MAIN_BRANCH,
            stage_only=asked.stage_only,
            snapshot_properties=dict(asked.snapshot_properties),
            replaces_schema=asked.schema_mode == "overwrite",
            replaces_partitions=asked.mode == "overwrite_partitions",
        )

    def _prepare(self, schema: pa.Schema, options: WriteOptions) -> WritePlan:
        if self._table is None:
            assert self._catalog is not None
            made = plan_new_table(self.name, schema, self._options, options.coerce_timestamps)
            self._maker = TableMaker(self._catalog, self._identifier, made)
            self._table = self._maker.stage()
        elif self._options.or_replace:
            self._replacer = TableReplacer(
                self.name, self._table.metadata, schema, self._options, options.coerce_timestamps
            )
        metadata = self._table.metadata if self._replacer is None else self._replacer.metadata
        details = self._details(metadata, schema, options)
        plan = plan_write(self.name, metadata, self._table.location_provider(), details, schema, options)
        if self._options.mode == "overwrite" and self._maker is None:
            self._replacement = self._plan_filter(metadata, details)
        self._metadata = metadata
        return plan

    def _plan_filter(self, metadata: TableMetadata, details: IcebergDetails) -> Replacement:
        given = self._options.overwrite_filter
        condition = None if given is None else RowFilter(given, metadata.schema())
        return self._replace(metadata, details, FilterChoice(condition))

    def _plan_partitions(self, plan: WritePlan, files: Sequence[DataFile]) -> None:
        if self._maker is not None:
            return
        metadata = self._metadata
        spec = metadata.specs()[plan.details.spec_id]
        schema = metadata.schema()
        fields = partition_fields_of(self.name, spec, schema)
        columns = {field.source_id for field in spec.fields}
        choice = PartitionChoice(files, fields, spec.spec_id, columns, arrow_schema(schema))
        self._replacement = self._replace(metadata, plan.details, choice)

    def _replace(
        self, metadata: TableMetadata, details: IcebergDetails, choice: FilterChoice | PartitionChoice
    ) -> Replacement:
        assert self._table is not None
        head = branch_head(metadata, details.branch)
        if details.replaces_schema:
            return Replacement(metadata, self._table.io, head, choice, lambda rows: rows)
        projection = kept_projection(details.base_schema, details.schema)
        return Replacement(metadata, self._table.io, head, choice, projection.apply)

    def _commit(self, commit: Commit) -> Landed:
        assert self._table is not None
        if self._maker is not None:
            return self._maker.commit(commit)
        if self._replacer is not None:
            return self._replacer.commit(self._table, commit)
        return land(self._table, commit, self._replacement)

    def _explain(self, schema: pa.Schema, options: WriteOptions) -> Explanation:
        try:
            self._load(create=False)
        except TableNotFound:
            if not self._options.create:
                raise
        made = None
        if self._table is None:
            metadata = unmade_metadata(
                plan_new_table(self.name, schema, self._options, options.coerce_timestamps), self.name
            )
            made = "the table is made, in one commit with its first snapshot"
        elif self._options.or_replace:
            replacer = TableReplacer(self.name, self._table.metadata, schema, self._options, options.coerce_timestamps)
            metadata = replacer.metadata
            made = "the table is replaced; its history stays"
        else:
            metadata = self._table.metadata
        details = self._details(metadata, schema, options)
        provider = load_location_provider(metadata.location, metadata.properties)
        plan = plan_write(self.name, metadata, provider, details, schema, options)
        replacement = None
        if self._options.mode == "overwrite" and self._table is not None:
            replacement = self._plan_filter(metadata, details)
        return explain_write(plan, metadata.properties, options, self._options, replacement, made)
