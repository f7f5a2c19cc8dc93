"""The contract of a storage: uploads that nobody sees before they are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

__all__ = ["Pending", "Storage", "StoredObject", "Upload"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A finished upload, not visible yet; small and picklable.

    Attributes:
        path: where the object will be.
        nbytes: its length.
        token: what the storage needs to publish it, such as a temporary path or an upload id.
    """

    path: str
    nbytes: int
    token: str


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object that readers can see."""

    path: str
    nbytes: int


class Upload(Protocol):
    """One object on its way; its calls come one after another."""

    async def append(self, pieces: Sequence[pa.Buffer]) -> None:
        """Add bytes; they are stored when this returns."""
        ...

    async def finish(self) -> Pending:
        """End the object without making it visible."""
        ...

    async def abort(self) -> None:
        """Drop what was uploaded; does nothing when that is gone already."""
        ...


class Storage(Protocol):
    """Where files are written. Every error is a `StoreError` with the original as its cause."""

    async def create(self, path: str) -> Upload:
        """Begin an object under a name that was never used."""
        ...

    async def publish(self, pending: Pending) -> StoredObject:
        """Make a finished upload visible, all at once; `AlreadyExists` if the name is taken."""
        ...

    async def discard(self, pending: Pending) -> None:
        """Drop a finished upload that wasn't published."""
        ...

    async def delete(self, path: str) -> None:
        """Delete an object; does nothing when there is none."""
        ...

    async def remove_made_directories(self) -> None:
        """Remove what had to be made to hold objects and holds none."""
        ...
