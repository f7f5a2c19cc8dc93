"""The ledger: every location that a write has handed out, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

from daftwrite.errors import AlreadyExists
from daftwrite.storage.base import Pending, Storage, StoredObject, Upload

__all__ = ["Ledger"]


class Ledger:
    """Keeps uploads open, pending and published, and undoes them.

    Args:
        storage: where this write's objects go.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._open: dict[str, Upload] = {}
        self._pending: dict[str, Pending] = {}
        self._published: dict[str, StoredObject] = {}
        self._attempted: set[str] = set()

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Finished uploads that aren't published."""
        return tuple(self._pending.values())

    async def create(self, path: str) -> Upload:
        """Begin an upload."""
        upload = await self.storage.create(path)
        self._open[path] = upload
        return upload

    async def finish(self, path: str) -> Pending:
        """End an upload without publishing it."""
        pending = await self._open[path].finish()
        self._pending[path] = pending
        del self._open[path]
        return pending

    def expect_published(self, pendings: Iterable[Pending]) -> None:
        """Say that finished uploads may become visible without `publish` being called here."""
        self._attempted.update(pending.path for pending in pendings)

    async def publish(self, pending: Pending) -> StoredObject:
        """Publish a finished upload."""
        self._attempted.add(pending.path)
        try:
            stored = await self.storage.publish(pending)
        except AlreadyExists:
            self._attempted.discard(pending.path)
            raise
        self._published[pending.path] = stored
        self._pending.pop(pending.path, None)
        return stored

    async def undo(self) -> list[tuple[str, Exception]]:
        """Abort what is open, discard what is pending, delete what is published.

        Returns:
            The locations that could not be undone, with the error of each.
        """
        failures: list[tuple[str, Exception]] = []
        for path, upload in list(self._open.items()):
            try:
                await upload.abort()
                del self._open[path]
            except Exception as error:
                failures.append((path, error))
        for path, pending in list(self._pending.items()):
            try:
                await self.storage.discard(pending)
                # A publish that failed without a clear answer may have made the object visible.
                if path in self._attempted:
                    await self.storage.delete(path)
                del self._pending[path]
            except Exception as error:
                failures.append((path, error))
        for path in list(self._published):
            try:
                await self.storage.delete(path)
                del self._published[path]
            except Exception as error:
                failures.append((path, error))
        return failures
