"""Which data files of a snapshot a filter touches, and what deletes apply to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    LiteralPredicate,
    NotNull,
    Or,
    SetPredicate,
)
from pyiceberg.expressions.visitors import (
    ROWS_CANNOT_MATCH,
    ROWS_MUST_MATCH,
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    manifest_evaluator,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import INITIAL_SEQUENCE_NUMBER, DataFile, DataFileContent, ManifestEntry, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import ManifestGroupPlanner
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import DoubleType, FloatType, UUIDType

from daftwrite.errors import ConfigError
from daftwrite.tables.iceberg.filters import RowFilter
from daftwrite.tables.iceberg.manifests import exact_manifests

__all__ = ["LiveFile", "live_files", "may_match", "surely_matches"]


@dataclass(frozen=True)
class LiveFile:
    """A data file of a snapshot with the position delete files that may apply to it."""

    file: DataFile
    deletes: tuple[DataFile, ...] = ()


def live_files(
    metadata: TableMetadata, io: FileIO, snapshot: Snapshot | None, condition: RowFilter | None
) -> list[LiveFile]:
    """The data files in which rows may match.

    Args:
        metadata: the table.
        io: reads manifests.
        snapshot: where to look; None for a table without any.
        condition: the filter, or None for all files.

    Raises:
        ConfigError: when equality deletes apply, which can't be read.
    """
    if snapshot is None:
        return []
    expression = AlwaysTrue() if condition is None else condition.expression
    planner = _Planner(metadata, io, expression)
    entries = chain.from_iterable(planner.plan_manifest_entries(exact_manifests(snapshot, io)))
    return _with_deletes(entries)


class _Planner(ManifestGroupPlanner):
    def _build_manifest_evaluator(self, spec_id: int) -> Callable[[ManifestFile], bool]:
        schema, spec = self.table_metadata.schema(), self.table_metadata.specs()[spec_id]
        partitions = Schema(*spec.partition_type(schema).fields)
        return manifest_evaluator(spec, schema, _by_bounds(self.partition_filters[spec_id], partitions))

    def _build_metrics_evaluator(self) -> Callable[[DataFile], bool]:
        schema = self.table_metadata.schema()
        return _InclusiveMetricsEvaluator(schema, _by_bounds(self.row_filter, schema)).eval


def _by_bounds(expression: BooleanExpression, schema: Schema) -> BooleanExpression:
    """What bounds can tell of a filter; nothing of UUIDs, which Java before 1.11 orders as two signed numbers."""
    if isinstance(expression, And):
        return And(_by_bounds(expression.left, schema), _by_bounds(expression.right, schema))
    if isinstance(expression, Or):
        return Or(_by_bounds(expression.left, schema), _by_bounds(expression.right, schema))
    if isinstance(expression, LiteralPredicate | SetPredicate):
        term: Any = expression.term
        not_null: Any = NotNull
        if isinstance(term.bind(schema).ref().field.field_type, UUIDType):
            held: BooleanExpression = not_null(term)
            return held
    return expression


def _with_deletes(entries: Iterable[ManifestEntry]) -> list[LiveFile]:
    index = DeleteFileIndex()
    data = []
    for entry in entries:
        file = entry.data_file
        if file.content == DataFileContent.DATA:
            data.append(entry)
        elif file.content == DataFileContent.POSITION_DELETES:
            index.add_delete_file(entry, partition_key=file.partition)
        else:
            raise ConfigError(
                f"equality deletes ({file.file_path}) can't be applied; compact the table before rows are replaced"
            )
    found = []
    for entry in data:
        sequence_number = entry.sequence_number or INITIAL_SEQUENCE_NUMBER
        deletes = index.for_data_file(sequence_number, entry.data_file, partition_key=entry.data_file.partition)
        found.append(LiveFile(entry.data_file, tuple(deletes)))
    return found


def surely_matches(file: DataFile, condition: RowFilter, schema: Schema) -> bool:
    """Whether statistics prove that all rows of a file match.

    pyiceberg takes missing counts for zero, so that a file without counts of nulls or NaN proves nothing; and it can't
    tell what nulls of parents make of a nested column. Bounds of UUIDs are in one of two orders.
    """
    if condition.everything:
        return True
    if not condition.field_ids <= {column.field_id for column in schema.fields}:
        return False
    for number in condition.field_ids:
        kind = schema.find_type(number)
        if number not in (file.null_value_counts or {}) or isinstance(kind, UUIDType):
            return False
        if isinstance(kind, FloatType | DoubleType) and number not in (file.nan_value_counts or {}):
            return False
    evaluator = _StrictMetricsEvaluator(schema, condition.expression)
    return bool(evaluator.eval(file) == ROWS_MUST_MATCH)


def may_match(file: DataFile, condition: RowFilter, schema: Schema) -> bool:
    """Whether statistics leave it open that rows of a file match."""
    evaluator = _InclusiveMetricsEvaluator(schema, _by_bounds(condition.expression, schema))
    return bool(evaluator.eval(file) != ROWS_CANNOT_MATCH)
