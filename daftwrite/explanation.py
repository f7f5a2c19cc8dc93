"""What a write would do, told before it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from daftwrite.sizes import format_size

__all__ = ["ColumnAlignment", "Explanation", "Setting"]


@dataclass(frozen=True)
class ColumnAlignment:
    """What becomes of one column.

    Attributes:
        name: the column in the target.
        source: its type in the source, or None where the source lacks it.
        stored: its type in the target.
        change: what is done to it: `"as it is"`, `"converted"`, `"nulls"`, `"added to the table"`, `"promoted"`.
    """

    name: str
    source: str | None
    stored: str
    change: str


@dataclass(frozen=True)
class Setting:
    """One setting of a write, and where it comes from: `"argument"`, `"table property"` or `"default"`."""

    name: str
    value: object
    origin: str


@dataclass(frozen=True)
class Explanation:
    """What a write would do.

    Attributes:
        target: the table or directory.
        columns: the alignment of each column.
        partitioning: the partition fields.
        settings: sizes, codec and the like.
        commit: what the commit would do, a sentence each.
    """

    target: str
    columns: Sequence[ColumnAlignment]
    partitioning: Sequence[str]
    settings: Sequence[Setting]
    commit: Sequence[str]

    def to_dict(self) -> Mapping[str, object]:
        """The same as plain values, for JSON."""
        return {
            "target": self.target,
            "columns": [vars(column) for column in self.columns],
            "partitioning": list(self.partitioning),
            "settings": [vars(setting) for setting in self.settings],
            "commit": list(self.commit),
        }

    def __str__(self) -> str:
        lines = [f"write to {self.target}", "columns:"]
        width = max((len(column.name) for column in self.columns), default=0)
        for column in self.columns:
            change = "" if column.change == "as it is" else f"  ({column.change})"
            lines.append(f"  {column.name:<{width}}  {column.source or '-'} -> {column.stored}{change}")
        lines.append(f"partitioned by: {', '.join(self.partitioning) or 'nothing'}")
        lines.append("settings:")
        for setting in self.settings:
            value = setting.value
            text = format_size(value) if setting.name.endswith("_size") and isinstance(value, int) else value
            lines.append(f"  {setting.name} = {text}  ({setting.origin})")
        lines.append("commit:")
        lines += [f"  {line}" for line in self.commit]
        return "\n".join(lines)
