"""An Iceberg table as the target of a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.table import CreateTableTransaction
from pyiceberg.table import Table as PyIcebergTable

from daftwrite.catalog.iceberg import resolve_identifier
from daftwrite.errors import ConfigError, DaftwriteError, TableNotFound, WriteError
from daftwrite.pipeline.resources import Resources
from daftwrite.plan import WritePlan
from daftwrite.storage.local import local_path
from daftwrite.tables.base import Commit, WriteOptions
from daftwrite.tables.iceberg import commit as commits
from daftwrite.tables.iceberg.prepare import new_partition_spec, plan_write, refuse_unsupported
from daftwrite.tables.iceberg.types import new_schema
from daftwrite.writers.transforms import PartitionField

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

__all__ = ["IcebergTable"]


class IcebergTable:
    """One write to an Iceberg table that exists, or that the write creates.

    Args:
        table: a pyiceberg table, or an identifier.
        catalog: where to look an identifier up; None for the configured or embedded catalog.
        create: whether a missing table is created.
        partition_by: how a created table is partitioned; an existing one must be partitioned so already.
    """

    def __init__(
        self,
        table: PyIcebergTable | str,
        catalog: Catalog | None,
        create: bool,
        partition_by: tuple[PartitionField, ...],
    ) -> None:
        self._given = table
        self._catalog = catalog
        self._create = create
        self._partition_by = partition_by
        self._table: PyIcebergTable | None = None
        self._identifier: tuple[str, ...] = ()
        self._creation: CreateTableTransaction | None = None
        self._made_namespaces: list[tuple[str, ...]] = []

    async def check(self, resources: Resources) -> None:
        """Load the table; see `Table.check`."""
        await resources.blocking(self._load)

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Plan the write; see `Table.prepare`."""
        return await resources.blocking(lambda: self._prepare(schema, options))

    async def commit(self, commit: Commit) -> int | None:
        """Append the files, creating the table where it was missing; see `Table.commit`."""
        return await commit.resources.blocking(lambda: self._commit(commit))

    async def roll_back(self, resources: Resources) -> None:
        """Drop namespaces that were made for a table that never came; see `Table.roll_back`."""
        await resources.blocking(self._drop_namespaces)

    def _load(self) -> None:
        if isinstance(self._given, PyIcebergTable):
            self._table = self._given
            self._identifier = self._given.name()
        else:
            self._catalog, self._identifier = resolve_identifier(self._given, self._catalog, create=self._create)
            self._table = self._find(self._catalog)
        if self._table is not None:
            self._check_table(self._table)

    def _find(self, catalog: Catalog) -> PyIcebergTable | None:
        name = ".".join(self._identifier)
        try:
            return catalog.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            if not self._create:
                raise TableNotFound(f"table {name} doesn't exist; pass create=True to make it") from error
            return None
        except Exception as error:
            raise WriteError(f"can't load table {name}: {error}") from error

    def _check_table(self, table: PyIcebergTable) -> None:
        name = ".".join(self._identifier)
        refuse_unsupported(name, table.metadata.format_version, table.properties)
        _check_location(table)
        if self._partition_by:
            present = [str(field) for field in self._spec_fields(table)]
            asked = [f"{field.name}: {field.transform}({field.source})" for field in self._partition_by]
            if present != asked:
                raise ConfigError(
                    f"table {name} exists and is partitioned by [{', '.join(present)}], not by [{', '.join(asked)}]"
                )

    def _spec_fields(self, table: PyIcebergTable) -> list[str]:
        schema = table.schema()
        return [f"{f.name}: {f.transform}({schema.find_column_name(f.source_id)})" for f in table.spec().fields]

    def _prepare(self, schema: pa.Schema, options: WriteOptions) -> WritePlan:
        try:
            if self._table is None:
                self._table = self._stage(schema, options)
                _check_location(self._table)
            return plan_write(self._table, schema, options)
        except DaftwriteError:
            raise
        except Exception as error:
            raise WriteError(f"can't prepare the write to {'.'.join(self._identifier)}: {error}") from error

    def _stage(self, schema: pa.Schema, options: WriteOptions) -> PyIcebergTable:
        catalog: Any = self._catalog
        iceberg_schema = new_schema(schema, options.coerce_timestamps)
        spec = new_partition_spec(self._partition_by, iceberg_schema)
        self._make_namespaces(catalog)
        self._creation = catalog.create_table_transaction(self._identifier, schema=iceberg_schema, partition_spec=spec)
        return self._creation._table

    def _make_namespaces(self, catalog: Catalog) -> None:
        for depth in range(1, len(self._identifier)):
            namespace = self._identifier[:depth]
            if not catalog.namespace_exists(namespace):
                try:
                    catalog.create_namespace(namespace)
                except Exception:
                    # Another writer may have made it just now, whatever this catalog then raises.
                    if not catalog.namespace_exists(namespace):
                        raise
                    continue
                self._made_namespaces.append(namespace)

    def _commit(self, commit: Commit) -> int | None:
        assert self._table is not None
        if self._creation is not None:
            snapshot_id = commits.create_and_append(self._creation, commit)
            self._made_namespaces.clear()
            return snapshot_id
        return commits.append(self._table, commit) if commit.files else None

    def _drop_namespaces(self) -> None:
        while self._made_namespaces:
            namespace = self._made_namespaces.pop()
            try:
                assert self._catalog is not None
                self._catalog.drop_namespace(namespace)
            except (NamespaceNotEmptyError, NoSuchNamespaceError):
                continue


def _check_location(table: PyIcebergTable) -> None:
    location = table.location_provider().new_data_location("x")
    if local_path(location) is None:
        name = ".".join(table.name())
        raise ConfigError(f"table {name} keeps its data at {location}; only local files can be written yet")
