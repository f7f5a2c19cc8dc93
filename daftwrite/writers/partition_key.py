"""The key of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["UNPARTITIONED", "PartitionKey"]


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """The values that all rows of a partition share.

    Attributes:
        values: partition values in physical form, in the order of the partition fields.
        texts: the same as `(field name, human text or None for null)`.
    """

    values: tuple[Any, ...]
    texts: tuple[tuple[str, str | None], ...]


UNPARTITIONED = PartitionKey((), ())
