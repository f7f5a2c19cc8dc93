"""Local files: a hidden temporary name beside the target, fsync, and a link into place."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from daftwrite.errors import AlreadyExists, StoreError
from daftwrite.storage.base import Pending, StoredObject

__all__ = [
    "LocalStorage",
    "LocalUpload",
    "Staging",
    "hidden_name",
    "local_path",
    "publish_file",
    "remove_file",
    "sync_directory",
]


def local_path(location: str) -> str | None:
    """The path of a local file's location (`/x`, `file:/x`, `file:///x`), or None for one that isn't local."""
    match = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+):(?://([^/]*))?(.*)", location)
    if match is None:
        return location
    scheme, host, path = match.groups()
    return path if scheme.lower() == "file" and host in (None, "", "localhost") else None


def hidden_name(path: str, distinction: str = "") -> str:
    """The temporary path of a file while it is written; `distinction` tells apart writers of one path."""
    folder, name = os.path.split(path)
    middle = f".{distinction}" if distinction else ""
    return os.path.join(folder, f".{name}{middle}.tmp")


def sync_directory(path: str) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Staging:
    """A directory that is written under another name first, and renamed when it is whole."""

    final: str
    staged: str


class LocalStorage:
    """Files on a local disk.

    Args:
        run: runs a blocking function in a thread.
        staging: where files of a directory lie until it is renamed.
        distinction: stands in temporary names, for paths that other writers may write as well.
    """

    def __init__(
        self,
        run: Callable[[Callable[[], None]], Awaitable[None]],
        staging: Staging | None = None,
        distinction: str = "",
    ) -> None:
        self._run = run
        self._staging = staging
        self._distinction = distinction
        self._made: list[str] = []

    def locate(self, location: str) -> str:
        """The path on disk of a location."""
        path = local_path(location)
        if path is None:
            raise StoreError(f"{location} is not a local file")
        if self._staging is not None and path.startswith(self._staging.final + os.sep):
            return self._staging.staged + path[len(self._staging.final) :]
        return path

    def temporary(self, path: str) -> str:
        """The temporary path of a file on disk."""
        return hidden_name(path, self._distinction)

    async def create(self, path: str) -> LocalUpload:
        """Begin a file; see `Storage.create`."""
        await self._call(lambda: self._create(self.locate(path)), f"can't create {path}")
        return LocalUpload(self, path)

    async def publish(self, pending: Pending) -> StoredObject:
        """Link a finished file into place; see `Storage.publish`."""
        await self._call(
            lambda: publish_file(pending.token, self.locate(pending.path)), f"can't publish {pending.path}"
        )
        return StoredObject(pending.path, pending.nbytes)

    async def discard(self, pending: Pending) -> None:
        """Remove a finished file's temporary name; see `Storage.discard`."""
        await self._call(lambda: remove_file(pending.token), f"can't remove {pending.token}")

    async def delete(self, path: str) -> None:
        """Remove a file; see `Storage.delete`."""
        await self._call(lambda: remove_file(self.locate(path)), f"can't delete {path}")

    async def remove_made_directories(self) -> None:
        """Remove the directories that this storage made, as far as they are empty."""
        await self._call(self._remove_made, "can't remove directories")

    def _create(self, path: str) -> None:
        folder = os.path.dirname(path)
        self._make(folder)
        descriptor = os.open(self.temporary(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.close(descriptor)

    def _make(self, folder: str) -> None:
        missing = []
        while folder and not os.path.isdir(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for path in reversed(missing):
            try:
                os.mkdir(path)
            except FileExistsError:
                continue
            self._made.append(path)

    def _remove_made(self) -> None:
        while self._made:
            try:
                os.rmdir(self._made.pop())
            except OSError:
                continue

    async def _call(self, work: Callable[[], None], message: str) -> None:
        def guarded() -> None:
            try:
                work()
            except FileExistsError as error:
                raise AlreadyExists(f"{message}: it exists already") from error
            except OSError as error:
                raise StoreError(f"{message}: {error.strerror or error}") from error

        await self._run(guarded)


class LocalUpload:
    """A file being written under its temporary name; no descriptor stays open between two appends."""

    def __init__(self, storage: LocalStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._temporary = storage.temporary(storage.locate(path))
        self._nbytes = 0

    async def append(self, pieces: Sequence[pa.Buffer]) -> None:
        """Add bytes; see `Upload.append`."""
        await self._storage._call(lambda: self._append(pieces), f"can't write {self._path}")

    async def finish(self) -> Pending:
        """Flush to the disk; see `Upload.finish`."""
        await self._storage._call(self._sync, f"can't finish {self._path}")
        return Pending(self._path, self._nbytes, self._temporary)

    async def abort(self) -> None:
        """Remove the temporary file; see `Upload.abort`."""
        await self._storage._call(lambda: remove_file(self._temporary), f"can't remove {self._temporary}")

    def _append(self, pieces: Sequence[pa.Buffer]) -> None:
        with open(self._temporary, "ab", buffering=0) as file:
            for piece in pieces:
                view = memoryview(piece)
                while len(view):
                    written = file.write(view)
                    view = view[written:]
                    self._nbytes += written

    def _sync(self) -> None:
        descriptor = os.open(self._temporary, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def publish_file(temporary: str, path: str) -> None:
    """Give a finished file its name, unless the name is taken; doing it again is fine.

    Raises:
        FileExistsError: when another file has the name.
    """
    try:
        os.link(temporary, path)
    except FileNotFoundError:
        if not os.path.exists(path):
            raise
        return
    except FileExistsError:
        if not _is_published(temporary, path):
            raise
    except OSError:
        _claim_and_rename(temporary, path)
    remove_file(temporary)
    sync_directory(os.path.dirname(path))


def _is_published(temporary: str, path: str) -> bool:
    try:
        return os.path.samefile(temporary, path)
    except FileNotFoundError:
        # Somebody else published it and removed the temporary name just now.
        return os.path.exists(path)


def _claim_and_rename(temporary: str, path: str) -> None:
    """For file systems without hard links: an empty file claims the name, then is replaced."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    os.replace(temporary, path)


def remove_file(path: str) -> None:
    """Remove a file; nothing happens when there is none."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except NotADirectoryError:
        return
