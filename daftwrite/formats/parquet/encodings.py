"""Which columns of a row group are worth a dictionary, told from a sample of their values."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.pipeline.types import is_list

__all__ = ["dictionary_columns", "leaf_paths"]

_WINDOWS = 8
_WINDOW_ROWS = 1024
_MOSTLY_DISTINCT = 0.9


def dictionary_columns(table: pa.Table) -> list[str]:
    """Dotted Parquet paths of the leaf columns to encode with a dictionary.

    A dictionary of values that hardly repeat costs a hash of each and saves nothing. The sample is a few windows of
    consecutive rows, so that values that repeat close to each other are seen to repeat. Row groups that are hardly
    longer than the sample get dictionaries throughout.
    """
    few = table.num_rows < 2 * _WINDOWS * _WINDOW_ROWS
    chosen: list[str] = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if few or pa.types.is_nested(field.type):
            chosen += leaf_paths(field.type, field.name)
        elif not _never(field.type) and _repeats(column):
            chosen.append(field.name)
    return chosen


def _never(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_null(kind) or isinstance(kind, pa.BaseExtensionType))


def _repeats(column: pa.ChunkedArray) -> bool:
    step = (len(column) - _WINDOW_ROWS) // (_WINDOWS - 1)
    windows = [column.slice(i * step, _WINDOW_ROWS) for i in range(_WINDOWS)]
    sample = pa.chunked_array([chunk for window in windows for chunk in window.chunks], type=column.type)
    present = len(sample) - sample.null_count
    distinct: int = pc.count_distinct(sample, mode="only_valid").as_py()
    return bool(distinct <= _MOSTLY_DISTINCT * present)


def leaf_paths(kind: pa.DataType, path: str) -> Iterator[str]:
    """The dotted Parquet paths of the leaf columns of a type that stands at a path."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from leaf_paths(field.type, f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        yield from leaf_paths(kind.key_type, f"{path}.key_value.key")
        yield from leaf_paths(kind.item_type, f"{path}.key_value.value")
    elif is_list(kind):
        yield from leaf_paths(kind.value_type, f"{path}.list.element")
    else:
        yield path
