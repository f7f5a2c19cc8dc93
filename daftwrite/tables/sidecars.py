"""Files beside the data of a directory: Parquet's `_metadata` and Hadoop's `_SUCCESS`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from daftwrite.errors import SchemaError, StoreError
from daftwrite.storage.local import sync_directory

__all__ = ["METADATA_FILE", "STALE_SIDECARS", "SUCCESS_FILE", "write_metadata_file", "write_success_file"]

METADATA_FILE = "_metadata"
SUCCESS_FILE = "_SUCCESS"
STALE_SIDECARS = (METADATA_FILE, "_common_metadata", SUCCESS_FILE)


def write_metadata_file(path: str, files: Sequence[tuple[str, str]]) -> None:
    """Write the row groups of many Parquet files into one footer, as Dask and pyarrow's datasets read it.

    Args:
        path: where to write.
        files: where each file lies now, and its path relative to the directory.

    Raises:
        SchemaError: when the files have different schemas.
    """
    merged: pq.FileMetaData | None = None
    for now, relative in files:
        footer = pq.read_metadata(now)
        footer.set_file_path(relative.replace(os.sep, "/"))
        if merged is None:
            merged = footer
            continue
        try:
            merged.append_row_groups(footer)
        except (RuntimeError, pa.ArrowException) as error:
            raise SchemaError(f"write_metadata_file: {relative} has another schema than the other files") from error
    if merged is None:
        return
    try:
        merged.write_metadata_file(path)
        _sync(path)
    except OSError as error:
        raise StoreError(f"can't write {path}: {error.strerror}") from error


def write_success_file(path: str) -> None:
    """Write an empty file."""
    try:
        with open(path, "wb"):
            pass
        _sync(path)
    except OSError as error:
        raise StoreError(f"can't write {path}: {error.strerror}") from error


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(os.path.dirname(path))
