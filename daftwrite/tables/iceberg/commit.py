"""Committing finished files to an Iceberg table: landed once, refused, or unknown."""

from __future__ import annotations

import logging
import random
import time
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
from pyiceberg.schema import Schema
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertCurrentSchemaId
from pyiceberg.types import DecimalType, DoubleType, FloatType, IcebergType, IntegerType, LongType

from daftwrite.errors import CommitConflict, CommitStateUnknown, WriteError
from daftwrite.tables.base import Commit
from daftwrite.tables.iceberg.append import AppendFiles
from daftwrite.tables.iceberg.data_file import iceberg_data_file, leaf_fields
from daftwrite.tables.iceberg.prepare import IcebergDetails, partition_path

if TYPE_CHECKING:
    from pyiceberg.table import CreateTableTransaction
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["WRITE_ID_PROPERTY", "append", "create_and_append", "find_landed"]

logger = logging.getLogger("daftwrite")

WRITE_ID_PROPERTY = "daftwrite.write-id"
_ROUNDS = 6
_STATUS_CHECKS = 3
_FIRST_WAIT_SECONDS = 0.1
_WORTH_A_RETRY = (CommitFailedException, ValidationException)
_REFUSALS = (
    *_WORTH_A_RETRY,
    NoSuchTableError,
    TableAlreadyExistsError,
    BadRequestError,
    ForbiddenError,
    UnauthorizedError,
)


def find_landed(table: PyIcebergTable, write_id: str) -> int | None:
    """The id of the snapshot that carries a write id, or None."""
    for snapshot in table.metadata.snapshots:
        if snapshot.summary is not None and snapshot.summary.additional_properties.get(WRITE_ID_PROPERTY) == write_id:
            return snapshot.snapshot_id
    return None


def append(table: PyIcebergTable, commit: Commit) -> int:
    """Append the files in one snapshot; returns its id.

    Raises:
        CommitConflict: when the table is gone, was replaced, or moved on in a way that the files don't fit.
        CommitStateUnknown: when no answer tells whether the commit landed.
    """
    for round_ in range(_ROUNDS):
        _refresh(table, commit)
        _check_still_fits(table.metadata, commit)
        transaction = Transaction(table, autocommit=False)
        transaction._stage(
            (), (AssertCurrentSchemaId.model_validate({"current-schema-id": table.metadata.current_schema_id}),)
        )
        producer = _stage(transaction, commit)
        try:
            transaction.commit_transaction()
            return producer.snapshot_id
        except Exception as error:
            refused = isinstance(error, _REFUSALS)
            landed = _look_for(table, commit, error, certain=refused)
            if landed is not None:
                return landed
            producer.discard()
            if not isinstance(error, _WORTH_A_RETRY) or round_ == _ROUNDS - 1:
                raise _conflict(commit, f"the catalog refused the commit: {error}") from error
            wait = _FIRST_WAIT_SECONDS * 2**round_ * random.uniform(0.5, 1.5)
            logger.info("commit to %s was refused (%s), trying again in %.1f s", commit.plan.target, error, wait)
            time.sleep(wait)
    raise AssertionError("unreachable")


def create_and_append(transaction: CreateTableTransaction, commit: Commit) -> int | None:
    """Create the table with the files in it, in one commit; without files it becomes an empty table."""
    table = transaction._table
    uuid = table.metadata.table_uuid
    producer = _stage(transaction, commit) if commit.files else None
    snapshot_id = None if producer is None else producer.snapshot_id
    try:
        transaction.commit_transaction()
        return snapshot_id
    except Exception as error:
        fresh = _load_fresh(table, commit, error, certain=isinstance(error, _REFUSALS))
        if fresh is not None and fresh.metadata.table_uuid == uuid:
            return snapshot_id
        if fresh is None and not isinstance(error, _REFUSALS):
            raise _unknown(commit, error) from error
        if producer is not None:
            producer.discard()
        raise _conflict(commit, f"the catalog refused to create the table: {error}") from error


def _stage(transaction: Transaction, commit: Commit) -> AppendFiles:
    details: IcebergDetails = commit.plan.details
    partitions = {file.path: partition_path(tuple(file.partition.items())) for file in commit.files}

    def validate(metadata: TableMetadata) -> None:
        try:
            _check_still_fits(metadata, commit)
        except CommitConflict as error:
            raise ValidationException(str(error)) from error

    producer = AppendFiles(transaction, {WRITE_ID_PROPERTY: commit.plan.write_id}, partitions, validate)
    leaves = leaf_fields(details.schema)
    for file in commit.files:
        producer.append_data_file(iceberg_data_file(file, leaves, details.spec_id, details.metrics))
    try:
        producer.commit()
    except Exception as error:
        producer.discard()
        raise WriteError(f"can't write the manifests of table {commit.plan.target}: {error}") from error
    return producer


def _refresh(table: PyIcebergTable, commit: Commit) -> None:
    try:
        table.refresh()
    except NoSuchTableError as error:
        raise _conflict(commit, "the table was dropped meanwhile") from error
    except Exception as error:
        if _another_has_its_name(table):
            raise _conflict(commit, "another table has its name now") from error
        raise WriteError(f"can't load table {commit.plan.target} for the commit: {error}") from error


def _another_has_its_name(table: PyIcebergTable) -> bool:
    try:
        return table.catalog.load_table(table.name()).metadata.table_uuid != table.metadata.table_uuid
    except Exception:
        # Whatever keeps the catalog from telling, the error that led here is the one to report.
        return False


def _load_fresh(table: PyIcebergTable, commit: Commit, error: Exception, *, certain: bool) -> PyIcebergTable | None:
    """The table as it is now, or None when there is none; looks a few times where the answer is not certain.

    Raises:
        CommitStateUnknown: when the catalog doesn't tell.
    """
    failure: Exception = error
    for check in range(_STATUS_CHECKS):
        if check or not certain:
            time.sleep(_FIRST_WAIT_SECONDS * 2**check)
        try:
            return table.catalog.load_table(table.name())
        except NoSuchTableError:
            if certain:
                return None
        except Exception as raised:
            failure = raised
            logger.info("can't check whether the commit to %s landed: %s", commit.plan.target, raised)
    if failure is not error:
        raise _unknown(commit, error) from error
    return None


def _look_for(table: PyIcebergTable, commit: Commit, error: Exception, *, certain: bool) -> int | None:
    """The id of our snapshot, if the commit landed in spite of an error; None if it certainly did not.

    Raises:
        CommitStateUnknown: when neither is certain.
    """
    details: IcebergDetails = commit.plan.details
    for check in range(1 if certain else _STATUS_CHECKS):
        if check:
            time.sleep(_FIRST_WAIT_SECONDS * 2**check)
        fresh = _load_fresh(table, commit, error, certain=certain)
        if fresh is None or str(fresh.metadata.table_uuid) != details.table_uuid:
            break
        landed = find_landed(fresh, commit.plan.write_id)
        if landed is not None:
            return landed
    if certain:
        return None
    raise _unknown(commit, error) from error


def _check_still_fits(metadata: TableMetadata, commit: Commit) -> None:
    details: IcebergDetails = commit.plan.details
    if str(metadata.table_uuid) != details.table_uuid:
        raise _conflict(commit, "another table has its name now")
    if details.spec_id not in metadata.specs():
        raise _conflict(commit, f"partition spec {details.spec_id} was dropped meanwhile")
    problem = _schema_problem(details.schema, metadata.schema())
    if problem:
        raise _conflict(commit, f"its schema changed meanwhile: {problem}")


def _schema_problem(written: Schema, current: Schema) -> str | None:
    if written == current:
        return None
    for number in set(current.field_ids) - set(written.field_ids):
        if current.find_field(number).required:
            return f"column '{current.find_column_name(number)}' is new and required"
    for number in written.field_ids:
        name = current.find_column_name(number)
        if name is None:
            continue
        before, now = written.find_field(number), current.find_field(number)
        if before.field_type.is_primitive and not _readable_as(before.field_type, now.field_type):
            return f"column '{name}' was {before.field_type} and is {now.field_type}"
        if now.required and not before.required:
            return f"column '{name}' became required"
    return None


def _readable_as(before: IcebergType, now: IcebergType) -> bool:
    if before == now:
        return True
    if isinstance(before, DecimalType) and isinstance(now, DecimalType):
        return before.scale == now.scale and before.precision <= now.precision
    promoted = (isinstance(before, IntegerType), isinstance(before, FloatType))
    return (promoted[0] and isinstance(now, LongType)) or (promoted[1] and isinstance(now, DoubleType))


def _unknown(commit: Commit, error: Exception) -> CommitStateUnknown:
    return CommitStateUnknown(
        f"nobody can tell whether the commit to {commit.plan.target} landed (write id {commit.plan.write_id}); "
        f"its {len(commit.files)} files are kept: {error}",
        write_id=commit.plan.write_id,
        files=commit.files,
    )


def _conflict(commit: Commit, reason: str) -> CommitConflict:
    return CommitConflict(
        f"can't commit to {commit.plan.target}: {reason}", write_id=commit.plan.write_id, files=commit.files
    )
