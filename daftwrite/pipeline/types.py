"""Which Arrow type becomes which without changing a value, and why another does not."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

__all__ = ["conversion_problems", "logical_type"]

pat = pa.types
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def logical_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values, whatever their encoding: views, dictionaries and run ends are unpacked.

    Nested types are rebuilt of logical types; extension types other than uuid become their storage where their values
    keep their meaning (JSON is text, bool8 is boolean) and are left alone where they don't.
    """
    if pat.is_dictionary(kind):
        return logical_type(kind.value_type)
    if pat.is_run_end_encoded(kind):
        return logical_type(kind.value_type)
    if pat.is_large_string(kind) or pat.is_string_view(kind):
        return pa.string()
    if pat.is_large_binary(kind) or pat.is_binary_view(kind):
        return pa.binary()
    if isinstance(kind, pa.JsonType):
        return pa.string()
    if isinstance(kind, pa.Bool8Type):
        return pa.bool_()
    if pat.is_date64(kind):
        return pa.date32()
    if is_list(kind):
        field = kind.value_field
        return pa.list_(pa.field("element", logical_type(field.type), field.nullable, field.metadata))
    if pat.is_struct(kind):
        return pa.struct([f.with_type(logical_type(f.type)) for f in kind])
    if pat.is_map(kind):
        item = kind.item_field
        return pa.map_(
            pa.field("key", logical_type(kind.key_type), nullable=False, metadata=kind.key_field.metadata),
            pa.field("value", logical_type(item.type), item.nullable, item.metadata),
        )
    return kind


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is any of Arrow's list layouts."""
    return bool(
        pat.is_list(kind)
        or pat.is_large_list(kind)
        or pat.is_fixed_size_list(kind)
        or pat.is_list_view(kind)
        or pat.is_large_list_view(kind)
    )


def is_opaque(kind: pa.DataType) -> bool:
    """Whether a type is an extension whose storage doesn't tell its meaning."""
    return isinstance(kind, pa.BaseExtensionType) and kind != pa.uuid()


def is_text(kind: pa.DataType) -> bool:
    """Whether values are variable-length text."""
    return bool(pat.is_string(kind) or pat.is_large_string(kind) or pat.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether values are variable-length bytes."""
    return bool(pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind))


def conversion_problems(
    source: pa.DataType, target: pa.DataType, path: str, coerce_timestamps: str | None
) -> Iterator[str]:
    """Yield a sentence for each reason why values of `source` can't be stored as `target` unchanged.

    Args:
        source: the type that arrives.
        target: the type to store.
        path: the column's name, dotted for nested fields.
        coerce_timestamps: the unit that finer times may be cast to, or None to refuse that.
    """
    source = logical_type(source)
    if pat.is_null(source) or source == target:
        return
    if is_list(target) and is_list(source):
        yield from conversion_problems(source.value_type, target.value_type, f"{path}.element", coerce_timestamps)
    elif pat.is_map(target) and pat.is_map(source):
        yield from conversion_problems(source.key_type, target.key_type, f"{path}.key", coerce_timestamps)
        yield from conversion_problems(source.item_type, target.item_type, f"{path}.value", coerce_timestamps)
    elif pat.is_struct(target) and pat.is_struct(source):
        yield from _struct_problems(source, target, path, coerce_timestamps)
    elif is_opaque(source):
        yield f"column '{path}': extension type {source} is not supported"
    elif not _widens(source, target, coerce_timestamps):
        yield f"column '{path}': {source} can't be stored as {target}{_hint(source, target)}"


def _struct_problems(
    source: pa.StructType, target: pa.StructType, path: str, coerce_timestamps: str | None
) -> Iterator[str]:
    yield from name_problems([f.name for f in source], f"{path}.")
    names = {f.name: f for f in source}
    known = {f.name for f in target}
    for field in target:
        nested = f"{path}.{field.name}"
        if field.name in names:
            yield from conversion_problems(names[field.name].type, field.type, nested, coerce_timestamps)
        elif not field.nullable:
            yield f"column '{nested}' is required and missing in the source"
    for name in names:
        if name not in known:
            yield f"column '{path}.{name}' is not in the table"


def name_problems(names: list[str], prefix: str = "") -> Iterator[str]:
    """Yield a sentence for each name that stands twice, also in another letter case, or is empty."""
    seen: dict[str, str] = {}
    for name in names:
        folded = name.casefold()
        if not name:
            yield f"column '{prefix}': a column has an empty name"
        elif seen.get(folded) == name:
            yield f"column '{prefix}{name}' stands twice"
        elif folded in seen:
            yield f"columns '{prefix}{seen[folded]}' and '{prefix}{name}' differ only in letter case"
        seen.setdefault(folded, name)


def _hint(source: pa.DataType, target: pa.DataType) -> str:
    timed = pat.is_timestamp(source) and pat.is_timestamp(target)
    if timed and (source.tz is None) != (target.tz is None):
        return " (one has a time zone, the other has none)"
    if (timed or pat.is_time(source)) and _finer(source, target):
        return f" without losing digits; pass coerce_timestamps='{target.unit}' to allow exact values"
    if pat.is_integer(source) and pat.is_floating(target):
        return " without losing digits; cast it before (read_csv: schema_overrides)"
    if is_text(source):
        return "; cast it before (read_csv: schema_overrides)"
    return ""


def _finer(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(hasattr(target, "unit") and _UNITS[source.unit] > _UNITS[target.unit])


def _unit_fits(source: pa.DataType, target: pa.DataType, coerce_timestamps: str | None) -> bool:
    if not _finer(source, target):
        return True
    return coerce_timestamps is not None and _UNITS[target.unit] >= _UNITS[coerce_timestamps]


def _widens(source: pa.DataType, target: pa.DataType, coerce_timestamps: str | None) -> bool:
    if pat.is_integer(target) and pat.is_integer(source):
        return _integer_widens(source, target)
    if pat.is_floating(target) and pat.is_floating(source):
        return bool(source.bit_width <= target.bit_width)
    if pat.is_decimal(target):
        return _decimal_widens(source, target)
    if is_text(target) or is_bytes(target):
        return is_text(source) or is_bytes(source) or (is_bytes(target) and pat.is_fixed_size_binary(source))
    if target == pa.uuid():
        return bool(pat.is_fixed_size_binary(source) and source.byte_width == 16)
    if pat.is_fixed_size_binary(target):
        return bool(source == pa.uuid() and target.byte_width == 16)
    if pat.is_timestamp(target) and pat.is_timestamp(source):
        return (source.tz is None) == (target.tz is None) and _unit_fits(source, target, coerce_timestamps)
    if pat.is_time(target) and pat.is_time(source):
        return _unit_fits(source, target, coerce_timestamps)
    if pat.is_duration(target) and pat.is_duration(source):
        return not _finer(source, target)
    return False


def _integer_widens(source: pa.DataType, target: pa.DataType) -> bool:
    if pat.is_signed_integer(source):
        return bool(pat.is_signed_integer(target) and source.bit_width <= target.bit_width)
    # An unsigned type of the same width fits a signed one as long as its values do, which the cast checks.
    return bool(source.bit_width <= target.bit_width)


def _decimal_widens(source: pa.DataType, target: pa.DataType) -> bool:
    whole = target.precision - target.scale
    if pat.is_integer(source):
        return bool(whole >= _INTEGER_DIGITS[source.bit_width])
    if pat.is_decimal(source):
        return bool(source.scale <= target.scale and source.precision - source.scale <= whole)
    return False
