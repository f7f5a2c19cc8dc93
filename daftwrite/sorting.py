"""Sort orders of tables: `dw.asc("ts")` and `dw.desc("ts")`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from daftwrite.errors import ConfigError
from daftwrite.writers.transforms import PartitionField

__all__ = ["SortBy", "SortField", "asc", "desc", "sort_fields"]


@dataclass(frozen=True)
class SortField:
    """A column, or a transform of one, to sort by.

    Attributes:
        term: the column, or a transform such as `dw.bucket(16, "id")`.
        descending: whether the greatest comes first.
        nulls_first: whether nulls come before all values. Default: first where ascending, last where descending.
    """

    term: str | PartitionField
    descending: bool = False
    nulls_first: bool | None = None

    @property
    def field(self) -> PartitionField:
        """The term with its transform."""
        return PartitionField(self.term) if isinstance(self.term, str) else self.term

    @property
    def puts_nulls_first(self) -> bool:
        """Where nulls come, the default filled in."""
        return not self.descending if self.nulls_first is None else self.nulls_first


SortBy = str | PartitionField | SortField | Sequence[str | PartitionField | SortField] | None


def asc(term: str | PartitionField, nulls_first: bool = True) -> SortField:
    """Sort by a column from the least value."""
    return SortField(term, False, nulls_first)


def desc(term: str | PartitionField, nulls_first: bool = False) -> SortField:
    """Sort by a column from the greatest value."""
    return SortField(term, True, nulls_first)


def sort_fields(sort_by: SortBy) -> tuple[SortField, ...]:
    """Sort fields from what `sort_by` takes.

    Raises:
        ConfigError: when an item is no column, transform or sort field.
    """
    if sort_by is None:
        return ()
    if isinstance(sort_by, (str, PartitionField, SortField)):
        sort_by = [sort_by]
    if not isinstance(sort_by, Sequence):
        raise ConfigError(f"sort_by takes columns, or a list of them, not {sort_by!r}")
    made = []
    for item in sort_by:
        if isinstance(item, SortField):
            made.append(item)
        elif isinstance(item, (str, PartitionField)):
            made.append(SortField(item))
        else:
            raise ConfigError(f"sort_by takes columns such as 'id' or dw.desc('ts'), not {item!r}")
    return tuple(made)
