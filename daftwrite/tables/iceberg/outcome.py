"""What became of a commit: landed, refused, or unknown."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    ForbiddenError,
    NoSuchTableError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ValidationException,
)

from daftwrite.errors import CommitConflict, CommitStateUnknown, WriteError
from daftwrite.sizes import counted
from daftwrite.tables.base import Commit
from daftwrite.tables.iceberg.properties import TableProperties

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = [
    "REFUSALS",
    "WORTH_A_RETRY",
    "WRITE_ID_PROPERTY",
    "conflict",
    "has_landed",
    "look_for",
    "refresh",
]

logger = logging.getLogger("daftwrite")

WRITE_ID_PROPERTY = "daftwrite.write-id"
WORTH_A_RETRY = (CommitFailedException, ValidationException)
REFUSALS = (
    *WORTH_A_RETRY,
    NoSuchTableError,
    TableAlreadyExistsError,
    BadRequestError,
    ForbiddenError,
    UnauthorizedError,
)


def has_landed(table: PyIcebergTable, table_uuid: str, write_id: str) -> bool:
    """Whether a table is the one that was written to, and has a snapshot that carries a write's id."""
    return str(table.metadata.table_uuid) == table_uuid and any(
        snapshot.summary is not None and snapshot.summary.additional_properties.get(WRITE_ID_PROPERTY) == write_id
        for snapshot in table.metadata.snapshots
    )


def refresh(table: PyIcebergTable, commit: Commit) -> None:
    """Load the table as it is now.

    Raises:
        CommitConflict: when it is gone, or another has its name.
        WriteError: when the catalog doesn't answer.
    """
    try:
        table.refresh()
    except NoSuchTableError as error:
        raise conflict(commit, "the table was dropped meanwhile") from error
    except Exception as error:
        if _another_has_its_name(table):
            raise conflict(commit, "another table has its name now") from error
        raise WriteError(f"can't load table {commit.plan.target} for the commit: {error}") from error


def _another_has_its_name(table: PyIcebergTable) -> bool:
    try:
        return table.catalog.load_table(table.name()).metadata.table_uuid != table.metadata.table_uuid
    except Exception:
        # Whatever keeps the catalog from telling, the error that led here is the one to report.
        return False


def look_for(
    table: PyIcebergTable,
    commit: Commit,
    error: Exception,
    landed: Callable[[PyIcebergTable], bool],
    *,
    certain: bool,
) -> PyIcebergTable | None:
    """The table as it is now if a commit landed in spite of an error; None if it certainly did not.

    Args:
        table: the table.
        commit: for messages.
        error: what the catalog answered.
        landed: tells of the table as it is now whether the commit is part of it.
        certain: whether the error says that the commit was refused; then one look is enough.

    Raises:
        CommitStateUnknown: when neither is certain.
    """
    for _ in _looks(table, certain=certain):
        try:
            fresh = table.catalog.load_table(table.name())
        except NoSuchTableError:
            fresh = None
        except Exception as raised:
            logger.info("can't check whether the commit to %s landed: %s", commit.plan.target, raised)
            continue
        if fresh is not None and landed(fresh):
            return fresh
        if certain:
            return None
    raise _unknown(commit, error) from error


def _looks(table: PyIcebergTable, *, certain: bool) -> Iterator[int]:
    """Times to look, with waits as `commit.status-check.*` says; a refusal is looked into at once."""
    properties = TableProperties(table.metadata.properties)
    wait, longest = properties.status_wait_seconds
    begun = time.monotonic()
    for look in range(properties.status_checks):
        if look or not certain:
            time.sleep(min(wait * 2**look, longest))
        if time.monotonic() - begun > properties.status_total_seconds:
            return
        yield look


def _unknown(commit: Commit, error: Exception) -> CommitStateUnknown:
    """A doubtful outcome with the files that it is about."""
    return CommitStateUnknown(
        f"nobody can tell whether the commit to {commit.plan.target} landed (write id {commit.plan.write_id}); "
        f"what it wrote ({counted(len(commit.all_files), 'file')}) is kept: {error}",
        write_id=commit.plan.write_id,
        files=commit.all_files,
    )


def conflict(commit: Commit, reason: str) -> CommitConflict:
    """A definite refusal with its reason."""
    return CommitConflict(
        f"can't commit to {commit.plan.target}: {reason}", write_id=commit.plan.write_id, files=commit.all_files
    )
