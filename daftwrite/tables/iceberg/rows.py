"""Reading a table's data files row by row, as its current schema sees them, in little memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import NameMapping, parse_mapping_from_json
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, ListType, MapType, NestedField, StructType, UUIDType

from daftwrite.errors import ConfigError
from daftwrite.pipeline.convert import convert, nulls, relabel
from daftwrite.pipeline.types import is_list
from daftwrite.tables.iceberg.scan import LiveFile
from daftwrite.tables.iceberg.types import arrow_schema

__all__ = ["RowReader"]

_BATCH_ROWS = 32_768
_BUFFER_NBYTES = 1 << 20
_FIELD_ID = b"PARQUET:field_id"
_NAME_MAPPING = "schema.name-mapping.default"


class RowReader:
    """Reads rows of data files under the table's current schema.

    Columns are found by field id (through the name mapping where a file has none), so that renamed, added, dropped and
    promoted columns come out right; nulls of nested types stay nulls.

    Args:
        metadata: the table.
        io: opens files.
    """

    def __init__(self, metadata: TableMetadata, io: FileIO) -> None:
        self._metadata = metadata
        self._schema = metadata.schema()
        self._target = arrow_schema(self._schema)
        self._io = io
        mapping = metadata.properties.get(_NAME_MAPPING)
        self._mapping = None if mapping is None else parse_mapping_from_json(mapping)

    def read(self, live: LiveFile, columns: Collection[int] | None = None) -> Iterator[pa.Table]:
        """The rows of a file that aren't deleted, in order, a few at a time.

        Args:
            live: the file and its deletes.
            columns: ids of the columns that are needed; all others come as nulls. None for all.
        """
        path = live.file.file_path
        if live.file.file_format != FileFormat.PARQUET:
            raise ConfigError(f"{path} is {live.file.file_format.value}; only rows of Parquet files can be kept")
        deleted = self._deleted_positions(live)
        with self._io.new_input(path).open() as source:
            file = pq.ParquetFile(source, buffer_size=_BUFFER_NBYTES, pre_buffer=False)
            plan = _FilePlan(self, file.schema_arrow, live.file, columns)
            position = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=plan.selected, use_threads=False):
                rows = plan.apply(batch)
                kept = _without(rows, deleted, position)
                position += batch.num_rows
                if kept.num_rows:
                    yield kept

    def _deleted_positions(self, live: LiveFile) -> npt.NDArray[np.int64]:
        found = [self._positions(delete, live.file.file_path) for delete in live.deletes]
        return np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)

    def _positions(self, delete: DataFile, path: str) -> npt.NDArray[np.int64]:
        if delete.file_format != FileFormat.PARQUET:
            raise ConfigError(f"deletes in {delete.file_path} are {delete.file_format.value}, which can't be read")
        pieces = []
        with self._io.new_input(delete.file_path).open() as source:
            file = pq.ParquetFile(source, buffer_size=_BUFFER_NBYTES, pre_buffer=False)
            for batch in file.iter_batches(_BATCH_ROWS, columns=["file_path", "pos"], use_threads=False):
                ours = pc.equal(batch.column("file_path"), path)
                pieces.append(np.asarray(batch.column("pos").filter(ours), dtype=np.int64))
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)

    def constant(self, field: NestedField, file: DataFile) -> Any:
        """The value that a column missing in a file has by its partition, or None."""
        spec = self._metadata.specs()[file.spec_id]
        for position, partition in enumerate(spec.fields):
            if partition.source_id == field.field_id and isinstance(partition.transform, IdentityTransform):
                return file.partition[position]
        return None

    @property
    def mapping(self) -> NameMapping | None:
        """Names to field ids for files without ids."""
        return self._mapping

    @property
    def schema(self) -> Schema:
        """The schema that rows come in."""
        return self._schema

    @property
    def target(self) -> pa.Schema:
        """The same for Arrow."""
        return self._target


class _FilePlan:
    """Which column of one file becomes which of the table."""

    def __init__(self, reader: RowReader, stored: pa.Schema, file: DataFile, columns: Collection[int] | None) -> None:
        self._reader = reader
        self._file = file
        ids = _ids(stored, reader.mapping, file.file_path)
        self._found: list[tuple[NestedField, str | None, pa.DataType | None]] = []
        for field in reader.schema.fields:
            wanted = columns is None or field.field_id in columns or bool(_nested_ids(field) & set(columns))
            name = ids.get(field.field_id) if wanted else None
            kind = None
            if name is not None:
                kind = _named(stored.field(name).type, field.field_type, stored.field(name), reader.mapping)
            self._found.append((field, name, kind))
        names = [name for _, name, _ in self._found if name is not None]
        # A dotted name would select nested columns.
        self.selected = None if any("." in name for name in names) else names

    def apply(self, batch: pa.RecordBatch) -> pa.Table:
        columns = []
        for (field, name, kind), target in zip(self._found, self._reader.target, strict=True):
            if name is None:
                columns.append(self._missing(field, target.type, batch.num_rows))
                continue
            column = relabel(pa.chunked_array([batch.column(name)]), kind)
            columns.append(
                pa.chunked_array([convert(chunk, target.type, target.name) for chunk in column.chunks], target.type)
            )
        schema = pa.schema([field.with_nullable(True) for field in self._reader.target])
        return pa.Table.from_arrays(columns, schema=schema)

    def _missing(self, field: NestedField, kind: pa.DataType, rows: int) -> pa.ChunkedArray:
        value = self._reader.constant(field, self._file)
        if value is None:
            return pa.chunked_array([nulls(rows, kind)])
        return pa.chunked_array([pa.repeat(_constant(value, field.field_type, kind), rows)], kind)


def _constant(value: Any, field_type: IcebergType, kind: pa.DataType) -> pa.Scalar:
    if isinstance(field_type, UUIDType):
        return pa.scalar(getattr(value, "bytes", value), pa.binary(16)).cast(kind)
    if pa.types.is_date32(kind):
        return pa.scalar(value, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.scalar(value, pa.int64()).cast(kind)
    return pa.scalar(value, kind)


def _ids(stored: pa.Schema, mapping: NameMapping | None, path: str) -> dict[int, str]:
    found = {}
    for field in stored:
        number = _field_id(field)
        if number is not None:
            found[number] = field.name
    if found:
        return found
    if mapping is None:
        raise ConfigError(f"{path} has no field ids, and the table has no {_NAME_MAPPING}")
    for field in stored:
        for mapped in mapping.root:
            if field.name in mapped.names and mapped.field_id is not None:
                found[mapped.field_id] = field.name
    return found


def _field_id(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_FIELD_ID)
    return None if text is None else int(text)


def _nested_ids(field: NestedField) -> set[int]:
    found = {field.field_id}
    kind = field.field_type
    if isinstance(kind, StructType):
        for child in kind.fields:
            found |= _nested_ids(child)
    elif isinstance(kind, ListType):
        found |= _nested_ids(kind.element_field)
    elif isinstance(kind, MapType):
        found |= _nested_ids(kind.key_field) | _nested_ids(kind.value_field)
    return found


def _named(stored: pa.DataType, kind: IcebergType, field: pa.Field, mapping: NameMapping | None) -> pa.DataType:
    """A file's type with the table's names for nested fields; what the table doesn't have gets a name it can't have."""
    if isinstance(kind, StructType) and pa.types.is_struct(stored):
        names = {child.field_id: child for child in kind.fields}
        fields: list[pa.Field] = []
        for position, child in enumerate(stored):
            number = _field_id(child)
            twin = names.get(number) if number is not None else _by_name(child.name, kind.fields, mapping)
            if twin is None:
                fields.append(pa.field(f"\0{position}", child.type, child.nullable))
            else:
                fields.append(pa.field(twin.name, _named(child.type, twin.field_type, child, mapping), child.nullable))
        return pa.struct(fields)
    if isinstance(kind, ListType) and is_list(stored):
        value = stored.value_field
        inner = pa.field("element", _named(value.type, kind.element_type, value, mapping), value.nullable)
        return pa.large_list(inner) if pa.types.is_large_list(stored) else pa.list_(inner)
    if isinstance(kind, MapType) and pa.types.is_map(stored):
        key, item = stored.key_field, stored.item_field
        return pa.map_(
            pa.field("key", _named(key.type, kind.key_type, key, mapping), nullable=False),
            pa.field("value", _named(item.type, kind.value_type, item, mapping), item.nullable),
        )
    return stored


def _by_name(name: str, fields: Sequence[NestedField], mapping: NameMapping | None) -> NestedField | None:
    ids = set() if mapping is None else {m.field_id for m in _all_mapped(mapping.root) if name in m.names}
    for field in fields:
        if field.field_id in ids:
            return field
    return None


def _all_mapped(fields: Sequence[Any]) -> Iterator[Any]:
    for field in fields:
        yield field
        yield from _all_mapped(field.fields)


def _without(rows: pa.Table, deleted: npt.NDArray[np.int64], position: int) -> pa.Table:
    if not len(deleted):
        return rows
    first, last = np.searchsorted(deleted, (position, position + rows.num_rows))
    if first == last:
        return rows
    keep = np.ones(rows.num_rows, dtype=bool)
    keep[deleted[first:last] - position] = False
    return rows.filter(pa.array(keep))
