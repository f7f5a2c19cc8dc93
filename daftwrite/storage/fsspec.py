"""Objects through an fsspec filesystem that can upload now and publish later."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pyarrow as pa

from daftwrite.errors import StoreError
from daftwrite.storage.base import Pending, StoredObject

__all__ = ["FsspecStorage", "FsspecUpload"]

_PART_NBYTES = 8 << 20


class FsspecStorage:
    """Objects of a filesystem whose files take `autocommit=False`, as those of s3fs do.

    Nothing is visible before `publish`: until then an object is an unfinished multipart upload.

    Args:
        filesystem: the fsspec filesystem.
        run: runs a blocking function in a thread.
    """

    def __init__(self, filesystem: Any, run: Callable[[Callable[[], None]], Awaitable[None]]) -> None:
        self._filesystem = filesystem
        self._run = run
        self._finished: dict[str, Any] = {}

    async def create(self, path: str) -> FsspecUpload:
        """Begin an object; see `Storage.create`."""
        upload = FsspecUpload(self, path)
        await self._call(upload.open, f"can't create {path}")
        return upload

    async def publish(self, pending: Pending) -> StoredObject:
        """Complete an upload; see `Storage.publish`."""
        file = self._finished[pending.path]
        await self._call(file.commit, f"can't publish {pending.path}")
        del self._finished[pending.path]
        return StoredObject(pending.path, pending.nbytes)

    async def discard(self, pending: Pending) -> None:
        """Abort an upload that ended; see `Storage.discard`."""
        file = self._finished.get(pending.path)
        if file is not None:
            await self._call(file.discard, f"can't abort the upload of {pending.path}")
            self._finished.pop(pending.path, None)

    async def delete(self, path: str) -> None:
        """Delete an object; see `Storage.delete`."""

        def delete() -> None:
            # The listing that the filesystem keeps knows nothing of what was published just now.
            self._filesystem.invalidate_cache()
            if self._filesystem.exists(path):
                self._filesystem.rm_file(path)

        await self._call(delete, f"can't delete {path}")

    async def remove_made_directories(self) -> None:
        """Nothing: object stores have no directories."""

    def begin(self, path: str) -> Any:
        """Open a file that isn't published when it is closed."""
        # `open` would keep every such file in the filesystem's transaction.
        return self._filesystem._open(path, mode="wb", block_size=_PART_NBYTES, autocommit=False)

    def keep(self, path: str, file: Any) -> None:
        """Remember a finished file until it is published or discarded."""
        self._finished[path] = file

    async def _call(self, work: Callable[[], Any], message: str) -> None:
        def guarded() -> None:
            try:
                work()
            except Exception as error:
                raise StoreError(f"{message}: {error}") from error

        await self._run(guarded)


class FsspecUpload:
    """One object on its way."""

    def __init__(self, storage: FsspecStorage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._file: Any = None
        self._nbytes = 0

    def open(self) -> None:
        """Begin the upload; blocking."""
        self._file = self._storage.begin(self._path)

    async def append(self, pieces: Sequence[pa.Buffer]) -> None:
        """Add bytes; see `Upload.append`."""
        await self._storage._call(lambda: self._append(pieces), f"can't write {self._path}")

    async def finish(self) -> Pending:
        """End the object; see `Upload.finish`."""
        await self._storage._call(self._file.close, f"can't finish {self._path}")
        self._storage.keep(self._path, self._file)
        return Pending(self._path, self._nbytes, self._path)

    async def abort(self) -> None:
        """Abort the upload; see `Upload.abort`."""
        if self._file is not None and getattr(self._file, "mpu", None) is not None:
            await self._storage._call(self._file.discard, f"can't abort the upload of {self._path}")

    def _append(self, pieces: Sequence[pa.Buffer]) -> None:
        for piece in pieces:
            self._file.write(memoryview(piece))
            self._nbytes += piece.size
