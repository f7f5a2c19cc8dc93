"""The errors that daftwrite raises, one tree under `DaftwriteError`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daftwrite.result import DataFile

__all__ = [
    "AlreadyExists",
    "CommitConflict",
    "CommitError",
    "CommitStateUnknown",
    "ConfigError",
    "DaftwriteError",
    "DataError",
    "MissingDependency",
    "SchemaError",
    "StoreError",
    "TableNotFound",
    "WriteError",
    "WriterClosed",
]


class DaftwriteError(Exception):
    """Raised when daftwrite can't do what was asked; the base of every error below."""


class ConfigError(DaftwriteError, ValueError):
    """Raised when an argument, option or table property has a value that can't be honoured."""


class MissingDependency(DaftwriteError, ImportError):
    """Raised when a feature needs a package that isn't installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed; run: pip install 'daftwrite[{extra}]'")


class SchemaError(DaftwriteError, ValueError):
    """Raised when the source's schema can't become the target's without changing values.

    Attributes:
        differences: every difference found, one sentence each.
    """

    def __init__(self, message: str, differences: Sequence[str] = ()) -> None:
        self.differences = tuple(differences)
        lines = "".join(f"\n  - {difference}" for difference in self.differences)
        super().__init__(message + lines)


class DataError(DaftwriteError, ValueError):
    """Raised when a value in the data can't be stored in its column."""


class StoreError(DaftwriteError, OSError):
    """Raised when storage fails to read, write, publish or delete an object."""


class AlreadyExists(StoreError):
    """Raised when the target of a create-only operation is there already."""


class TableNotFound(DaftwriteError, LookupError):
    """Raised when the target table doesn't exist and its creation wasn't asked for."""


class WriteError(DaftwriteError):
    """Raised when a write can't go on for a reason that is neither its data nor its storage."""


class WriterClosed(WriteError):
    """Raised when a writer is used after it was closed, aborted or has failed."""


class CommitError(DaftwriteError):
    """Raised when finished files don't become part of the table.

    Attributes:
        write_id: the id that names the write in file names and in the snapshot summary.
        files: the data files that the commit was about.
    """

    def __init__(self, message: str, *, write_id: str, files: Sequence[DataFile] = ()) -> None:
        super().__init__(message)
        self.write_id = write_id
        self.files = tuple(files)


class CommitConflict(CommitError):
    """Raised when the catalog definitely refused the commit; the write's files are deleted."""


class CommitStateUnknown(CommitError):
    """Raised when nobody can tell whether the commit landed; the write's files are kept."""
