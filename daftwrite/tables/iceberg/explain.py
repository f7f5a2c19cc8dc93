"""What a write to an Iceberg table would do, told without doing it."""

from __future__ import annotations

from collections.abc import Iterator

from pyiceberg.schema import Schema

from daftwrite.explanation import ColumnAlignment, Explanation
from daftwrite.plan import WritePlan
from daftwrite.tables.base import WriteOptions
from daftwrite.tables.explain import alignment, settings
from daftwrite.tables.iceberg.evolve import promotes
from daftwrite.tables.iceberg.options import IcebergOptions
from daftwrite.tables.iceberg.prepare import IcebergDetails
from daftwrite.tables.iceberg.replace import Replacement

__all__ = ["explain_write"]

_PROPERTY_OF = {
    "target_file_size": "write.target-file-size-bytes",
    "row_group_size": "write.parquet.row-group-size-bytes",
    "row_group_rows": "write.parquet.row-group-limit",
    "compression": "write.parquet.compression-codec",
    "compression_level": "write.parquet.compression-level",
}


def explain_write(
    plan: WritePlan,
    properties: dict[str, str],
    options: WriteOptions,
    asked: IcebergOptions,
    replacement: Replacement | None,
    made: str | None,
) -> Explanation:
    """Put a plan into words.

    Args:
        plan: the plan of the write.
        properties: the table's properties.
        options: sizes and codec asked for.
        asked: what else the write is asked to do.
        replacement: the files that it would replace, if any.
        made: how the table comes to be, or None for one that exists.
    """
    details: IcebergDetails = plan.details
    return Explanation(
        target=plan.target,
        columns=[_with_evolution(column, details.base_schema, details.schema) for column in alignment(plan.projection)],
        partitioning=[str(field) for field in plan.partitioning],
        settings=settings(plan, options, {key: properties.get(name) for key, name in _PROPERTY_OF.items()}),
        commit=list(_commit(details, asked, replacement, made)),
    )


def _with_evolution(column: ColumnAlignment, base: Schema, planned: Schema) -> ColumnAlignment:
    field = planned.find_field(column.name)
    if field.field_id not in base.field_ids:
        return ColumnAlignment(column.name, column.source, column.stored, "added to the table")
    if promotes(base.find_field(field.field_id).field_type, field.field_type):
        return ColumnAlignment(column.name, column.source, column.stored, "promoted")
    return column


def _commit(
    details: IcebergDetails, asked: IcebergOptions, replacement: Replacement | None, made: str | None
) -> Iterator[str]:
    if made is not None:
        yield made
    if details.schema != details.base_schema:
        change = "replaced" if details.replaces_schema else "extended"
        yield f"the table's schema is {change} in the same commit"
    if asked.mode == "overwrite_partitions":
        yield "every partition that the source has rows of is replaced"
    if replacement is not None:
        whole = len(replacement.removed)
        yield f"{whole:,} data files are replaced whole"
        if replacement.undecided:
            rows = sum(file.record_count for file in replacement.undecided)
            nbytes = sum(file.file_size_in_bytes for file in replacement.undecided)
            yield (
                f"{len(replacement.undecided):,} data files ({rows:,} rows, {nbytes:,} bytes) are read; those that "
                "hold replaced rows and others are rewritten"
            )
    if details.stage_only:
        yield "one snapshot that no branch has"
    else:
        yield f"one snapshot on branch {details.branch}"
