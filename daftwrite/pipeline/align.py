"""The projection that turns a source's columns into the target's, planned before anything is written."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from daftwrite.errors import SchemaError
from daftwrite.pipeline.convert import check_required, convert, nulls, relabel
from daftwrite.pipeline.types import conversion_problems, name_problems

__all__ = ["Projection", "plan_projection"]


@dataclass(frozen=True)
class Projection:
    """Which source column becomes which target column.

    Attributes:
        source: the schema that every batch must have.
        target: the schema after alignment, in the target's order.
        indices: for each target column its position in the source, or None for a column of nulls.
        labels: the same types under the names and metadata they have in files, or None where those don't differ.
    """

    source: pa.Schema
    target: pa.Schema
    indices: tuple[int | None, ...]
    labels: pa.Schema | None = None

    @property
    def stored(self) -> pa.Schema:
        """The schema of aligned batches."""
        return self.target if self.labels is None else self.labels

    def added_nbytes(self, rows: int) -> int:
        """Bytes that aligning so many rows may add: wider types, and columns of nulls."""
        width = 0
        for field, index in zip(self.target, self.indices, strict=True):
            if index is None or field.type != self.source.field(index).type:
                width += _width(field.type)
        return rows * width

    def check(self, schema: pa.Schema) -> None:
        """Refuse a batch whose schema differs from the one that was planned.

        Raises:
            SchemaError: when names or types differ.
        """
        if schema is self.source or schema.equals(self.source):
            return
        differences = []
        for i in range(max(len(schema), len(self.source))):
            planned = self.source.field(i) if i < len(self.source) else None
            given = schema.field(i) if i < len(schema) else None
            if planned is None or given is None or (planned.name, planned.type) != (given.name, given.type):
                differences.append(f"column {i}: {_describe(given)} instead of {_describe(planned)}")
        if differences:
            raise SchemaError("a batch has another schema than the first one", differences)

    def apply(self, batch: pa.RecordBatch | pa.Table) -> pa.Table:
        """Align a batch.

        Raises:
            DataError: when a value doesn't fit its column, or a required column has a null.
        """
        columns = []
        for field, index in zip(self.target, self.indices, strict=True):
            if index is None:
                columns.append(pa.chunked_array([nulls(batch.num_rows, field.type)]))
                continue
            column = batch.column(index)
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            converted = [convert(chunk, field.type, field.name) for chunk in chunks]
            for chunk in converted:
                check_required(chunk, field, field.name)
            columns.append(pa.chunked_array(converted, type=field.type))
        if self.labels is not None:
            columns = [relabel(column, field.type) for column, field in zip(columns, self.labels, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.stored)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_nested(kind):
        return sum(_width(kind.field(i).type) for i in range(kind.num_fields)) + 4
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 4


def _describe(field: pa.Field | None) -> str:
    return "nothing" if field is None else f"'{field.name}' {field.type}"


def plan_projection(source: pa.Schema, target: pa.Schema, *, coerce_timestamps: str | None = None) -> Projection:
    """Match columns by name and refuse what would change values.

    Args:
        source: the schema of the data.
        target: the schema to store; a field that isn't nullable is required.
        coerce_timestamps: `"ms"` or `"us"`: times of a finer unit may be cast to the target's, if exact.

    Raises:
        SchemaError: when anything differs that can't be aligned; all differences are listed.
    """
    if not len(source):
        raise SchemaError("the source has no columns")
    differences = list(name_problems(source.names))
    known = {field.name for field in target}
    folded = {name.casefold(): name for name in known}
    indices: list[int | None] = []
    for field in target:
        index = source.get_field_index(field.name)
        indices.append(index if index >= 0 else None)
        if index >= 0:
            found = source.field(index)
            if pa.types.is_null(found.type) and not field.nullable:
                differences.append(f"column '{field.name}' is required, and the source has only nulls")
            differences += conversion_problems(found.type, field.type, field.name, coerce_timestamps)
        elif not field.nullable:
            differences.append(f"column '{field.name}' is required and missing in the source")
    for name in source.names:
        if name not in known:
            twin = folded.get(name.casefold())
            hint = f"; the table has '{twin}'" if twin else ""
            differences.append(f"column '{name}' is not in the table{hint}")
    if differences:
        raise SchemaError("the source doesn't fit the target", differences)
    return Projection(source, target, tuple(indices))
