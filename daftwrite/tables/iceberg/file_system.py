"""The fsspec filesystem of a table's data files, with the table's own (also vended) credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from daftwrite.errors import ConfigError, MissingDependency

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["table_file_system"]

_SCHEMES = ("s3", "s3a", "s3n")


def table_file_system(table: PyIcebergTable, location: str) -> Any:
    """Open the filesystem of a location with the properties that the catalog gave for this table.

    Raises:
        ConfigError: when nothing can be written there.
        MissingDependency: when s3fs isn't installed.
    """
    scheme = location.split("://", 1)[0].lower()
    if scheme not in _SCHEMES:
        name = ".".join(table.name())
        raise ConfigError(f"table {name} keeps its data at {location}; only local files and S3 can be written")
    try:
        from pyiceberg.io.fsspec import FsspecFileIO
        from s3fs import S3FileSystem  # noqa: F401  # asks only whether it can be imported
    except ImportError as error:
        raise MissingDependency("s3fs", "s3") from error
    return FsspecFileIO(table.io.properties).get_fs(scheme)
