"""The tables that independent readers are asked to read: all types, transforms, versions, evolved specs and schemas."""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType, ListType, MapType, StructType, UUIDType

import daftwrite as dw
from daftwrite.writers.transforms import parse_partition_field

UTC = dt.UTC
MOMENTS = [
    dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(1970, 1, 1),
    dt.datetime(1677, 9, 22, 0, 12, 44),
    dt.datetime(2026, 2, 28, 23, 0, 0, 1),
    dt.datetime(2261, 1, 1, 12),
    None,
]
TEMPORAL = ("identity", "year", "month", "day", "hour")

# Type, Arrow type, values with the greatest variety, transforms.
TYPES: dict[str, tuple[pa.DataType, list[Any], tuple[str, ...]]] = {
    "boolean": (pa.bool_(), [True, False, None], ("identity", "void")),
    "int": (
        pa.int32(),
        [-(2**31) + 8, -11, -1, 0, 1, 17, 2**31 - 1, None],
        ("identity", "bucket[4]", "truncate[10]", "void"),
    ),
    "long": (pa.int64(), [-(2**63) + 8, -11, 0, 9, 2**63 - 1, None], ("identity", "bucket[4]", "truncate[10]")),
    "float": (pa.float32(), [math.nan, -0.0, 0.0, 1.5, -math.inf, math.inf, None], ("identity", "void")),
    "double": (pa.float64(), [math.nan, -0.0, 0.0, 0.1, -math.inf, 1e300, None], ("identity",)),
    "decimal": (
        pa.decimal128(9, 2),
        [Decimal("-1234567.89"), Decimal("-0.01"), Decimal("0.00"), Decimal("10.65"), Decimal("99.99"), None],
        ("identity", "bucket[4]", "truncate[50]"),
    ),
    "wide_decimal": (
        pa.decimal128(38, 10),
        [Decimal("-1234567890123456789012345678.0123456789"), Decimal("0E-10"), Decimal("7.5000000000"), None],
        ("identity", "bucket[4]", "truncate[50]"),
    ),
    "date": (
        pa.date32(),
        [dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(1600, 2, 29), dt.date(2026, 11, 30), None],
        ("identity", "bucket[4]", "year", "month", "day"),
    ),
    "time": (
        pa.time64("us"),
        [dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(12, 34, 56, 1), None],
        ("identity", "bucket[4]"),
    ),
    "timestamp": (pa.timestamp("us"), MOMENTS, (*TEMPORAL, "bucket[4]")),
    "timestamptz": (
        pa.timestamp("us", "UTC"),
        [None if m is None else m.replace(tzinfo=UTC) for m in MOMENTS],
        (*TEMPORAL, "bucket[4]"),
    ),
    "string": (
        pa.string(),
        ["", "null", "a/b=%é", "日本語", "😀" * 20, "x" * 40, "plain", None],
        ("identity", "bucket[4]", "truncate[2]"),
    ),
    "uuid": (
        pa.uuid(),
        [uuid.UUID(int=0), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), uuid.UUID(int=2**128 - 1), None],
        ("identity", "bucket[4]"),
    ),
    "fixed": (pa.binary(3), [b"abc", b"\x00\x00\x00", b"\xff\xff\xff", None], ("identity", "bucket[4]")),
    "binary": (pa.binary(), [b"", b"\x00\xff", b"abc" * 20, b"\xff" * 17, None], ("identity", "bucket[4]", "truncate[2]")),
}  # fmt: skip
PROMOTED = {"int": pa.int64(), "float": pa.float64(), "decimal": pa.decimal128(18, 2)}
NAN_TYPES = ("float", "double")


@dataclass(frozen=True)
class Case:
    """One table of the matrix.

    Attributes:
        name: of the table.
        kind: the partition column's type, or "nested".
        make: writes the table and returns the rows that it must hold.
    """

    name: str
    kind: str
    make: Callable[[Catalog], pa.Table]


@dataclass(frozen=True)
class Filter:
    """A filter on column `p` or `id`; `op` is one of =, <, null, not null, nan."""

    column: str
    op: str
    value: Any = None

    def holds(self, row: dict[str, Any]) -> bool:
        """Whether SQL says that a row matches; NaN is neither equal nor less."""
        found = row[self.column]
        if self.op == "null":
            return found is None
        if self.op == "not null":
            return found is not None
        if found is None:
            return False
        if self.op == "nan":
            return bool(math.isnan(found))
        return bool(found == self.value if self.op == "=" else found < self.value)


def cases() -> Iterator[Case]:
    """All tables of the matrix."""
    for version in ("1", "2"):
        for kind, (_, _, transforms) in TYPES.items():
            for transform in ("none", *transforms):
                yield _case(f"v{version}_{kind}_{transform}", kind, _partitioned, kind, transform, version)
            yield _case(f"v{version}_{kind}_evolved", kind, _evolved, kind, version)
        yield _case(f"v{version}_nested", "nested", _nested, version)


def _case(name: str, kind: str, make: Callable[..., pa.Table], *arguments: Any) -> Case:
    clean = "".join(c if c.isalnum() else "_" for c in name).strip("_")
    return Case(clean, kind, lambda catalog: make(catalog, f"ns.{clean}", *arguments))


def filters(kind: str) -> Iterator[Filter]:
    """The filters that every reader is asked for."""
    yield Filter("id", "<", 7)
    if kind == "nested":
        return
    yield Filter("p", "null")
    yield Filter("p", "not null")
    # Readers differ in whether zeros of either sign are equal.
    values = [v for v in TYPES[kind][1] if v is not None and (kind not in NAN_TYPES or (v == v and v != 0))]
    yield Filter("p", "=", values[len(values) // 2])
    yield Filter("p", "=", values[0])
    if kind not in ("boolean", "uuid", "fixed", "binary"):
        yield Filter("p", "<", values[len(values) // 2])
    if kind in NAN_TYPES:
        yield Filter("p", "nan")


def rows_of(kind: str, first: int, count: int) -> pa.Table:
    """Rows with ids from `first`, values of the type going round."""
    arrow, values, _ = TYPES[kind]
    ids = range(first, first + count)
    column = pa.array([values[i % len(values)] for i in ids], arrow)
    return pa.table({"id": pa.array(ids, pa.int64()), "p": column, "v": [f"row {i}" for i in ids]})


def _partitioned(catalog: Catalog, name: str, kind: str, transform: str, version: str) -> pa.Table:
    count = 2 * len(TYPES[kind][1]) + 1
    fields = [] if transform == "none" else [_field(transform)]
    first, second = rows_of(kind, 0, count), rows_of(kind, count, count)
    options: dict[str, Any] = {"catalog": catalog, "create": True, "partition_by": fields}
    dw.from_arrow(first).write_iceberg(name, properties={"format-version": version}, **options)
    dw.from_arrow(second).write_iceberg(name, catalog=catalog)
    return pa.concat_tables([first, second])


def _field(transform: str) -> Any:
    call, _, number = transform.rstrip("]").partition("[")
    return parse_partition_field(f"{call}({number}, p)" if number else f"{call}(p)")


def _evolved(catalog: Catalog, name: str, kind: str, version: str) -> pa.Table:
    """A table whose spec and schema change between writes, and that is then overwritten in part."""
    count = 2 * len(TYPES[kind][1])
    transforms = TYPES[kind][2]
    parts = [rows_of(kind, i * count, count) for i in range(3)]
    properties = {"format-version": version}
    dw.from_arrow(parts[0]).write_iceberg(name, catalog=catalog, create=True, properties=properties)
    table = catalog.load_table(name)
    with table.update_spec() as spec:
        spec.add_field("p", parse_transform(transforms[0]), "p_first")
    dw.from_arrow(parts[1]).write_iceberg(table)
    with table.refresh().update_spec() as spec:
        spec.remove_field("p_first")
        spec.add_field("p", parse_transform(transforms[-1]), "p_last")
        spec.add_field("id", parse_transform("bucket[2]"), "id_bucket")
    wider = parts[2].append_column("extra", pa.array([i / 2 for i in range(count)]))
    if kind in PROMOTED:
        wider = wider.set_column(1, "p", wider["p"].cast(PROMOTED[kind]))
    dw.from_arrow(wider).write_iceberg(table, schema_mode="merge")
    with table.refresh().update_schema() as schema:
        schema.rename_column("v", "w")
        schema.move_first("extra")
    fresh = rows_of(kind, 1000, 3).rename_columns(["id", "p", "w"])
    dw.from_arrow(fresh).write_iceberg(table, mode="overwrite", overwrite_filter=_cut(count))
    rows = [{**row, "extra": None, "w": row.pop("v")} for part in parts[:2] for row in part.to_pylist()]
    rows += [{**row, "w": row.pop("v")} for row in wider.to_pylist()]
    kept = [row for row in rows if not (3 <= row["id"] < count + 2 or row["id"] == 2 * count + 1)]
    kept += [{**row, "extra": None} for row in fresh.to_pylist()]
    arrow = [("extra", pa.float64()), ("id", pa.int64()), ("p", wider.schema.field("p").type), ("w", pa.string())]
    return pa.Table.from_pylist(kept, schema=pa.schema(arrow))


def _cut(count: int) -> Any:
    return dw.col("id").is_between(3, count + 1) | (dw.col("id") == 2 * count + 1)


def _nested(catalog: Catalog, name: str, version: str) -> pa.Table:
    """Structs, lists and maps with nulls at every level, columns added inside of them, and a part overwritten."""
    inner = pa.struct([("a", pa.int32()), ("s", pa.string())])
    schema = pa.schema(
        [("id", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), pa.list_(pa.int32())))]
    )
    rows: list[dict[str, Any]] = [
        {"id": 0, "s": {"a": 1, "s": "x"}, "l": [{"a": 1, "s": "y"}, None], "m": [("k", [1, None])]},
        {"id": 1, "s": None, "l": None, "m": None},
        {"id": 2, "s": {"a": None, "s": None}, "l": [], "m": []},
        {"id": 3, "s": {"a": -1, "s": ""}, "l": [{"a": None, "s": None}], "m": [("", None), ("z", [])]},
    ]
    first = pa.Table.from_pylist(rows, schema)
    properties = {"format-version": version}
    dw.from_arrow(first).write_iceberg(name, catalog=catalog, create=True, properties=properties)
    wide = pa.struct([("a", pa.int64()), ("s", pa.string()), ("new", pa.list_(pa.int32()))])
    wider = pa.schema([("id", pa.int64()), ("s", wide), ("l", pa.list_(wide)), schema.field("m")])
    later = [
        {"id": 10, "s": {"a": 2**40, "s": "x", "new": [1]}, "l": [{"a": 5, "s": None, "new": None}], "m": [("k", [9])]},
        {"id": 11, "s": None, "l": [None, {"a": 6, "s": "q", "new": [None]}], "m": None},
    ]
    table = catalog.load_table(name)
    dw.from_arrow(pa.Table.from_pylist(later, wider)).write_iceberg(table, schema_mode="merge")
    fresh = pa.Table.from_pylist([{"id": 20, "s": None, "l": [], "m": []}], wider)
    dw.from_arrow(fresh).write_iceberg(table, mode="overwrite", overwrite_filter="id = 2 or id = 10")
    expected = [row for row in rows if row["id"] != 2] + [row for row in later if row["id"] != 10] + fresh.to_pylist()
    return pa.Table.from_pylist(expected, wider)


def canonical(table: pa.Table, schema: Schema) -> list[tuple[Any, ...]]:
    """Rows in an order and a form that don't depend on the reader."""
    columns = []
    for field in schema.fields:
        values = table[field.name].to_pylist()
        columns.append([canonical_value(value, field.field_type) for value in values])
    return sorted(zip(*columns, strict=True), key=repr)


def canonical_value(value: Any, kind: IcebergType) -> Any:
    """One value; floats by their bits, one NaN for all."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return tuple(canonical_value(value[field.name], field.field_type) for field in kind.fields)
    if isinstance(kind, ListType):
        return tuple(canonical_value(item, kind.element_type) for item in value)
    if isinstance(kind, MapType):
        pairs = value.items() if isinstance(value, dict) else value
        made = [(canonical_value(k, kind.key_type), canonical_value(v, kind.value_type)) for k, v in pairs]
        return tuple(sorted(made, key=repr))
    if isinstance(kind, UUIDType):
        value = uuid.UUID(value).bytes if isinstance(value, str) else getattr(value, "bytes", value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack(">d", value).hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return str(value)


def expected_rows(rows: pa.Table, schema: Schema, condition: Filter | None = None) -> list[tuple[Any, ...]]:
    """What a reader must find."""
    found = rows.to_pylist()
    if condition is not None:
        found = [row for row in found if condition.holds(row)]
    kinds = [(field.name, field.field_type) for field in schema.fields]
    made = [tuple(canonical_value(row[name], kind) for name, kind in kinds) for row in found]
    return sorted(made, key=repr)


def write_matrix(catalog: Catalog, wanted: list[Case]) -> dict[str, tuple[Case, Table, pa.Table]]:
    """Write tables; their name to case, table and rows."""
    made = {}
    for case in wanted:
        rows = case.make(catalog)
        made[case.name] = (case, catalog.load_table(f"ns.{case.name}"), rows)
    return made
