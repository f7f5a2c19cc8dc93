"""What one write to an Iceberg table is asked to do, checked before anything is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from daftwrite.errors import ConfigError
from daftwrite.flags import check_flags
from daftwrite.sorting import SortField
from daftwrite.writers.transforms import PartitionField

__all__ = ["MODES", "IcebergOptions"]

MODES = ("append", "overwrite", "overwrite_partitions")
_SCHEMA_MODES = (None, "merge", "overwrite")
_COMPUTED = ("added-", "deleted-", "removed-", "total-", "partitions.")
_COMPUTED_NAMES = (
    "operation",
    "changed-partition-count",
    "partition-summaries-included",
    "replace-partitions",
    "daftwrite.write-id",
)


@dataclass(frozen=True)
class IcebergOptions:
    """One write's options; see `daftwrite.IcebergTarget` for their meaning."""

    mode: str = "append"
    overwrite_filter: Any = None
    allow_empty: bool = False
    schema_mode: str | None = None
    branch: str | None = None
    stage_only: bool = False
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    create: bool | str = False
    partition_by: tuple[PartitionField, ...] = ()
    sort_by: tuple[SortField, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    identifier_fields: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_flags(self, "allow_empty", "stage_only")
        if self.mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)} for an Iceberg table, not {self.mode!r}")
        if self.schema_mode not in _SCHEMA_MODES:
            raise ConfigError(f"schema_mode must be None, 'merge' or 'overwrite', not {self.schema_mode!r}")
        if self.create not in (True, False, "or_replace"):
            raise ConfigError(f"create must be True, False or 'or_replace', not {self.create!r}")
        if self.overwrite_filter is not None and self.mode != "overwrite":
            raise ConfigError(f"overwrite_filter needs mode='overwrite', not {self.mode!r}")
        if self.allow_empty and self.mode != "overwrite":
            raise ConfigError(f"allow_empty needs mode='overwrite', not {self.mode!r}")
        if self.schema_mode == "overwrite" and (self.mode != "overwrite" or self.overwrite_filter is not None):
            raise ConfigError("schema_mode='overwrite' needs mode='overwrite' without overwrite_filter")
        if self.stage_only and self.branch is not None:
            raise ConfigError("stage_only makes a snapshot that no branch has; leave branch out")
        if self.branch is not None and (not isinstance(self.branch, str) or not self.branch):
            raise ConfigError(f"branch must be a name, not {self.branch!r}")
        self._check_creation()
        _check_texts("properties", self.properties)
        _check_texts("snapshot_properties", self.snapshot_properties)
        for key in self.snapshot_properties:
            if key in _COMPUTED_NAMES or key.startswith(_COMPUTED):
                raise ConfigError(f"snapshot_properties has {key!r}, which the commit sets itself")

    @property
    def or_replace(self) -> bool:
        """Whether a table that exists is replaced."""
        return self.create == "or_replace"

    def _check_creation(self) -> None:
        if not self.create:
            for name in ("sort_by", "properties", "identifier_fields"):
                if getattr(self, name):
                    raise ConfigError(f"{name} is for tables that are made; pass create=True or create='or_replace'")
        if not self.or_replace:
            return
        for name, kept in (
            ("mode", "append"),
            ("overwrite_filter", None),
            ("schema_mode", None),
            ("branch", None),
            ("stage_only", False),
        ):
            if getattr(self, name) != kept:
                raise ConfigError(f"create='or_replace' replaces the whole table; leave {name} out")


def _check_texts(name: str, texts: Mapping[str, str]) -> None:
    if not isinstance(texts, Mapping):
        raise ConfigError(f"{name} must be a mapping of text to text, not {texts!r}")
    for key, value in texts.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ConfigError(f"{name} must map text to text, not {key!r} to {value!r}")
