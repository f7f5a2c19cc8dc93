"""Locations of data files, as a table's location provider wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.locations import LocationProvider
from pyiceberg.typedef import Record
from pyiceberg.types import IcebergType, UnknownType

from daftwrite.tables.iceberg.creation import our_transform
from daftwrite.tables.iceberg.types import arrow_type
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.partition_text import value_text

__all__ = ["IcebergNaming", "partition_path", "stored_partition_path"]


class _PartitionPath:
    def __init__(self, path: str) -> None:
        self._path = path

    def to_path(self) -> str:
        return self._path


@dataclass(frozen=True)
class IcebergNaming:
    """Names data files the way the table's location provider wants them.

    Attributes:
        provider: knows the data path and layout.
        write_id: stands in every name.
        task: the number of the writing task.
    """

    provider: LocationProvider
    write_id: str
    task: int = 0

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The location of a data file."""
        name = f"{self.task:05d}-{sequence:05d}-{self.write_id}.parquet"
        partition: Any = _PartitionPath(partition_path(key.texts)) if key.texts else None
        return self.provider.new_data_location(name, partition)


def partition_path(texts: Sequence[tuple[str, str | None]]) -> str:
    """A partition's path, as the Iceberg libraries write it; nobody reads it back."""
    return "/".join(
        f"{quote_plus(name, safe='')}={quote_plus('null' if text is None else text, safe='')}" for name, text in texts
    )


def stored_partition_path(spec: PartitionSpec, schema: Schema, partition: Record) -> str:
    """The path of a partition of a data file that is in the table.

    Args:
        spec: the file's.
        schema: names the types of the spec's sources.
        partition: the file's partition values as `read_entries` gives them.
    """
    kinds = spec.partition_type(schema).fields
    return partition_path(
        [
            (part.name, _text(part, kinds[position].field_type, partition[position]))
            for position, part in enumerate(spec.fields)
        ]
    )


def _text(part: PartitionField, kind: IcebergType, value: Any) -> str | None:
    transform = our_transform(part.transform)
    if transform is None or isinstance(kind, UnknownType):
        return part.transform.to_human_string(kind, value)
    return value_text(transform, arrow_type(kind), value)
