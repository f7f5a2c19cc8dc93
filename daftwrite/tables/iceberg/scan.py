"""Which data files of a snapshot a filter touches, and what deletes apply to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.visitors import (
    ROWS_CANNOT_MATCH,
    ROWS_MUST_MATCH,
    _InclusiveMetricsEvaluator,
    _StrictMetricsEvaluator,
)
from pyiceberg.io import FileIO
from pyiceberg.manifest import INITIAL_SEQUENCE_NUMBER, DataFile, DataFileContent, ManifestEntry
from pyiceberg.schema import Schema
from pyiceberg.table import ManifestGroupPlanner
from pyiceberg.table.delete_file_index import DeleteFileIndex
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.types import DoubleType, FloatType

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
    planner = ManifestGroupPlanner(metadata, io, expression)
    entries = chain.from_iterable(planner.plan_manifest_entries(exact_manifests(snapshot, io)))
    return _with_deletes(entries)


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
    tell what nulls of parents make of a nested column.
    """
    if condition.everything:
        return True
    if not condition.field_ids <= {column.field_id for column in schema.fields}:
        return False
    for number in condition.field_ids:
        counts = file.null_value_counts or {}
        if number not in counts:
            return False
        floats = isinstance(schema.find_type(number), (FloatType, DoubleType))
        if floats and number not in (file.nan_value_counts or {}):
            return False
    evaluator = _StrictMetricsEvaluator(schema, condition.expression)
    return bool(evaluator.eval(file) == ROWS_MUST_MATCH)


def may_match(file: DataFile, condition: RowFilter, schema: Schema) -> bool:
    """Whether statistics leave it open that rows of a file match."""
    return bool(_InclusiveMetricsEvaluator(schema, condition.expression).eval(file) != ROWS_CANNOT_MATCH)
