"""Locations of data files, as a table's location provider wants them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus

from pyiceberg.table.locations import LocationProvider

from daftwrite.writers.partition_key import PartitionKey

__all__ = ["IcebergNaming", "partition_path"]


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
