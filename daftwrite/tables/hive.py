"""Hive's layout of directories: `column=value` folders, and which files in them are data."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, unquote

from daftwrite.errors import DataError
from daftwrite.writers.partition_key import PartitionKey

__all__ = ["HiveNaming", "data_files", "is_hidden", "partition_of"]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_SAFE = " ,+-_.~!$&()@;"


@dataclass(frozen=True)
class HiveNaming:
    """Names files in Hive's layout: `column=value` folders.

    Attributes:
        root: the directory.
        extension: the end of file names.
        write_id: stands in every name.
        task: the number of the writing task.
    """

    root: str
    extension: str
    write_id: str
    task: int = 0

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The path of a file."""
        for field, text in key.texts:
            if text in ("", _NULL):
                raise DataError(f"partition '{field}': readers take {text!r} in a path for a null")
        folders = [f"{_escape(name)}={_NULL if text is None else _escape(text)}" for name, text in key.texts]
        name = f"{self.task:05d}-{sequence:05d}-{self.write_id}.{self.extension}"
        return os.path.join(self.root, *folders, name)


def _escape(text: str) -> str:
    return quote(text, safe=_SAFE)


def is_hidden(name: str) -> bool:
    """Whether readers pass a file or folder over for its name; a partition folder such as `_x=1` is none."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def data_files(root: str, extensions: tuple[str, ...]) -> Iterator[str]:
    """Paths of the visible files below a directory that have one of the endings."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        for name in sorted(names):
            if not is_hidden(name) and name.lower().endswith(extensions):
                yield os.path.join(folder, name)


def partition_of(path: str, root: str) -> tuple[tuple[str, str], ...]:
    """The `column=value` folders between a directory and a file, unescaped."""
    folders = os.path.relpath(os.path.dirname(path), root).split(os.sep)
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return tuple((unquote(name), unquote(value)) for name, _, value in pairs)
