"""The parts of an explanation that all targets share."""

from __future__ import annotations

from collections.abc import Mapping

from daftwrite.explanation import ColumnAlignment, Setting
from daftwrite.pipeline.align import Projection
from daftwrite.pipeline.types import logical_type
from daftwrite.plan import WritePlan
from daftwrite.tables.base import WriteOptions

__all__ = ["alignment", "settings"]


def alignment(projection: Projection) -> list[ColumnAlignment]:
    """What becomes of each column."""
    columns = []
    for field, index in zip(projection.target, projection.indices, strict=True):
        if index is None:
            columns.append(ColumnAlignment(field.name, None, str(field.type), "nulls"))
            continue
        source = projection.source.field(index).type
        change = "as it is" if logical_type(source) == field.type else "converted"
        columns.append(ColumnAlignment(field.name, str(source), str(field.type), change))
    return columns


def settings(plan: WritePlan, options: WriteOptions, properties: Mapping[str, str | None]) -> list[Setting]:
    """Sizes and codec with where they come from.

    Args:
        plan: the plan of the write.
        options: what was asked for.
        properties: setting to the table property that sets it, where there is one.
    """
    values: dict[str, object] = {"format": plan.format.name, "target_file_size": plan.sizes.target_file_size}
    if plan.format.name == "parquet":
        values["row_group_size"] = plan.sizes.row_group_size
        values["row_group_rows"] = plan.sizes.row_group_rows
    values["compression"] = getattr(plan.format, "compression", None)
    level = getattr(plan.format, "compression_level", None)
    if level is not None:
        values["compression_level"] = level
    return [Setting(name, value, _origin(name, options, properties)) for name, value in values.items()]


def _origin(name: str, options: WriteOptions, properties: Mapping[str, str | None]) -> str:
    if getattr(options, name, None) is not None:
        return "argument"
    return "table property" if properties.get(name) is not None else "default"
