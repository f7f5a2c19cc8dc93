"""Turning Arrow arrays into the types they are stored as, value by value the same."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from daftwrite.errors import DataError
from daftwrite.pipeline.types import is_bytes, is_list, is_text

__all__ = ["check_required", "convert", "list_entries", "nulls", "relabel"]

pat = pa.types


def convert(array: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """Convert an array to a type that `conversion_problems` found nothing against.

    Args:
        array: the values, in any of Arrow's layouts.
        target: the type to store.
        path: the column's name, for errors.

    Raises:
        DataError: when a value is out of the target's range.
    """
    kind = array.type
    if kind == target:
        return array
    try:
        if pat.is_null(kind):
            return nulls(len(array), target)
        if pat.is_dictionary(kind):
            return convert(_decode_dictionary(array), target, path)
        if pat.is_run_end_encoded(kind):
            return convert(pc.run_end_decode(array), target, path)
        if is_list(kind):
            return _convert_list(array, target, path)
        if pat.is_map(kind):
            return _convert_map(array, target, path)
        if pat.is_struct(kind):
            return _convert_struct(array, target, path)
        return _convert_leaf(array, target)
    except pa.ArrowInvalid as error:
        raise DataError(f"column '{path}': {kind} to {target}: {error}") from error


def nulls(rows: int, kind: pa.DataType) -> pa.Array:
    """Nulls of a type, also of a struct whose fields are required."""
    if not pat.is_struct(kind):
        return pa.nulls(rows, kind)
    return pa.array([None], kind).take(pa.nulls(rows, pa.int8()).fill_null(0))


def _decode_dictionary(array: pa.DictionaryArray) -> pa.Array:
    values = array.dictionary
    if pat.is_string_view(values.type):
        values = values.cast(pa.large_string())
    elif pat.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    return values.take(array.indices)


def _convert_leaf(array: pa.Array, target: pa.DataType) -> pa.Array:
    if isinstance(target, pa.UuidType):
        return pa.ExtensionArray.from_storage(target, array.cast(pa.binary(16)))
    if isinstance(array.type, pa.BaseExtensionType):
        storage = array.storage
        if isinstance(array.type, pa.Bool8Type):
            return pc.not_equal(storage, pa.scalar(0, pa.int8()))
        return storage if storage.type == target else _convert_leaf(storage, target)
    if pat.is_date64(array.type):
        return _whole_days(array)
    if pat.is_fixed_size_binary(array.type) and is_bytes(target):
        return array.cast(pa.binary()).cast(target)
    if is_bytes(array.type) and is_text(target):
        return array.cast(pa.binary()).cast(target)
    return array.cast(target, safe=True)


def _whole_days(array: pa.Array) -> pa.Array:
    days = array.cast(pa.date32(), safe=False)
    exact = pc.all(pc.equal(days.cast(pa.date64()).cast(pa.int64()), array.cast(pa.int64()))).as_py()
    if exact is False:
        raise pa.ArrowInvalid("a date64 value is not a whole day")
    return days


def _null_mask(array: pa.Array) -> pa.Array | None:
    return pc.is_null(array) if array.null_count else None


def _list_offsets(array: pa.Array) -> pa.Array:
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int64()), ends]).cast(pa.int32())


def _convert_list(array: pa.Array, target: pa.ListType, path: str) -> pa.Array:
    values = convert(array.flatten(), target.value_type, f"{path}.element")
    return pa.ListArray.from_arrays(_list_offsets(array), values, type=target, mask=_null_mask(array))


def list_entries(array: pa.MapArray) -> pa.ListArray:
    """A map array as a list array of its entries."""
    entries = pa.struct([array.type.key_field, array.type.item_field])
    return array.cast(pa.list_(pa.field("entries", entries, nullable=False)))


def _convert_map(array: pa.MapArray, target: pa.MapType, path: str) -> pa.Array:
    lists = list_entries(array)
    entries = lists.flatten()
    keys = convert(entries.field(0), target.key_type, f"{path}.key")
    items = convert(entries.field(1), target.item_type, f"{path}.value")
    return pa.MapArray.from_arrays(_list_offsets(lists), keys, items, type=target, mask=_null_mask(array))


def _convert_struct(array: pa.StructArray, target: pa.StructType, path: str) -> pa.Array:
    index = {field.name: i for i, field in enumerate(array.type)}
    # Flattened, a child is null where the struct is: what lies under a null must not be looked at.
    flat = array.flatten() if array.null_count else [array.field(i) for i in range(array.type.num_fields)]
    children = [
        convert(flat[index[field.name]], field.type, f"{path}.{field.name}")
        if field.name in index
        else nulls(len(array), field.type)
        for field in target
    ]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=_null_mask(array))


class _Labelled:
    """An array's data under a type that differs only in names and metadata of nested fields."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array = array
        self._kind = kind

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        _, data = self._array.__arrow_c_array__()
        return self._kind.__arrow_c_schema__(), data


def relabel(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Give a column's nested fields other names and metadata, without touching values."""
    if not pat.is_nested(kind):
        return column
    return pa.chunked_array([pa.array(_Labelled(chunk, kind)) for chunk in column.chunks], type=kind)


def check_required(array: pa.Array, field: pa.Field, path: str) -> None:
    """Refuse nulls where a field, or a field inside it, is required.

    Raises:
        DataError: when there is a null; it names the column.
    """
    _check_required(array, field, path, lambda nulls: nulls)


def _check_required(array: pa.Array, field: pa.Field, path: str, inside: Callable[[pa.Array], pa.Array]) -> None:
    if not field.nullable and array.null_count and pc.any(inside(pc.is_null(array))).as_py():
        raise DataError(f"column '{path}' is required, and the data has a null in it")
    kind = field.type
    if not _has_required(kind):
        return
    if pat.is_struct(kind):
        valid = pc.is_valid(array)
        for values, child in zip(array.flatten(), kind, strict=True):
            _check_required(values, child, f"{path}.{child.name}", lambda nulls: pc.and_(inside(nulls), valid))
    elif pat.is_map(kind):
        _check_required(list_entries(array).flatten().field(1), kind.item_field, f"{path}.value", lambda nulls: nulls)
    elif is_list(kind):
        _check_required(array.flatten(), kind.value_field, f"{path}.element", lambda nulls: nulls)


def _has_required(kind: pa.DataType) -> bool:
    if pat.is_struct(kind):
        return any(not f.nullable or _has_required(f.type) for f in kind)
    if pat.is_map(kind):
        return not kind.item_field.nullable or _has_required(kind.item_type)
    if is_list(kind):
        return not kind.value_field.nullable or _has_required(kind.value_type)
    return False
