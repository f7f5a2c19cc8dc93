"""Which data files of a snapshot a filter touches, and what deletes apply to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, LiteralPredicate, NotNull, SetPredicate
from pyiceberg.expressions.visitors import (
    ROWS_CANNOT_MATCH,
    ROWS_MUST_MATCH,
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
    expression_evaluator,
    inclusive_projection,
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
from daftwrite.tables.iceberg.predicates import map_predicates

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
    planner = ManifestGroupPlanner(metadata, io) if condition is None else _Planner(metadata, io, condition)
    entries = chain.from_iterable(planner.plan_manifest_entries(exact_manifests(snapshot, io)))
    return _with_deletes(entries)


class _Planner(ManifestGroupPlanner):
    def __init__(self, metadata: TableMetadata, io: FileIO, condition: RowFilter) -> None:
        super().__init__(metadata, io, condition.expression)
        self._schema = condition.schema

    def _build_partition_projection(self, spec_id: int) -> BooleanExpression:
        try:
            return inclusive_projection(self._schema, self.table_metadata.specs()[spec_id])(self.row_filter)
        except OverflowError:
            # The day after the calendar's last one has no year.
            return AlwaysTrue()

    def _build_manifest_evaluator(self, spec_id: int) -> Callable[[ManifestFile], bool]:
        spec = self.table_metadata.specs()[spec_id]
        partitions = Schema(*spec.partition_type(self._schema).fields)
        return manifest_evaluator(spec, self._schema, _by_bounds(self.partition_filters[spec_id], partitions))

    def _build_partition_evaluator(self, spec_id: int) -> Callable[[DataFile], bool]:
        partitions = Schema(*self.table_metadata.specs()[spec_id].partition_type(self._schema).fields)
        holds = expression_evaluator(partitions, self.partition_filters[spec_id], case_sensitive=True)
        return lambda file: holds(file.partition)

    def _build_metrics_evaluator(self) -> Callable[[DataFile], bool]:
        return _InclusiveMetricsEvaluator(self._schema, _by_bounds(self.row_filter, self._schema)).eval


def _by_bounds(expression: BooleanExpression, schema: Schema) -> BooleanExpression:
    """What bounds can tell of a filter; nothing of UUIDs, which Java before 1.11 orders as two signed numbers."""

    def told(predicate: BooleanExpression) -> BooleanExpression:
        if isinstance(predicate, LiteralPredicate | SetPredicate):
            term: Any = predicate.term
            if isinstance(term.bind(schema).ref().field.field_type, UUIDType):
                not_null: Any = NotNull
                held: BooleanExpression = not_null(term)
                return held
        return predicate

    return map_predicates(expression, told)


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


def surely_matches(file: DataFile, condition: RowFilter) -> bool:
    """Whether statistics prove that all rows of a file match.

    pyiceberg takes missing counts for zero, so that a file without counts of nulls or NaN proves nothing; and it can't
    tell what nulls of parents make of a nested column. Bounds of UUIDs are in one of two orders, and NaN is a bound
    in files of old writers.
    """
    if condition.everything:
        return True
    schema = condition.schema
    if not condition.field_ids <= {column.field_id for column in schema.fields}:
        return False
    for number in condition.field_ids:
        kind = schema.find_type(number)
        if number not in (file.null_value_counts or {}) or isinstance(kind, UUIDType):
            return False
        if isinstance(kind, FloatType | DoubleType) and not _nan_is_told(file, number, kind):
            return False
    evaluator = _StrictMetricsEvaluator(schema, condition.expression)
    return bool(evaluator.eval(file) == ROWS_MUST_MATCH)


def _nan_is_told(file: DataFile, number: int, kind: FloatType | DoubleType) -> bool:
    """Whether NaN is counted, and no bound."""
    bounds = ((given or {}).get(number) for given in (file.lower_bounds, file.upper_bounds))
    values = (from_bytes(kind, bound) for bound in bounds if bound is not None)
    return number in (file.nan_value_counts or {}) and all(value == value for value in values)


def may_match(file: DataFile, condition: RowFilter) -> bool:
    """Whether statistics leave it open that rows of a file match."""
    evaluator = _InclusiveMetricsEvaluator(condition.schema, _by_bounds(condition.expression, condition.schema))
    return bool(evaluator.eval(file) != ROWS_CANNOT_MATCH)
