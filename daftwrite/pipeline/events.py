"""Events of a write, given to one hook on the event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from daftwrite.errors import ConfigError

__all__ = [
    "BatchRead",
    "Committed",
    "Event",
    "EventHook",
    "FileOpened",
    "FilePublished",
    "RowGroupEncoded",
    "quietly",
]

logger = logging.getLogger("daftwrite")


@dataclass(frozen=True, slots=True)
class BatchRead:
    """A batch was taken from the source."""

    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class FileOpened:
    """A data file was begun; it isn't visible yet."""

    path: str


@dataclass(frozen=True, slots=True)
class RowGroupEncoded:
    """A row group was encoded and appended to its file."""

    path: str
    rows: int
    arrow_nbytes: int
    encoded_nbytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class FilePublished:
    """A data file is complete, and in a table format waits for its commit."""

    path: str
    rows: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Committed:
    """All files became part of the target."""

    files: int
    snapshot_id: int | None


Event = BatchRead | FileOpened | RowGroupEncoded | FilePublished | Committed
EventHook = Callable[[Event], None]


def quietly(hook: EventHook | None) -> EventHook:
    """Wrap a listener: an exception it raises is logged and detaches it, the write goes on."""
    if hook is not None and not callable(hook):
        raise ConfigError(f"on_event must be callable, not {hook!r}")
    attached = hook

    def emit(event: Event) -> None:
        nonlocal attached
        if attached is None:
            return
        try:
            attached(event)
        except Exception:
            logger.exception("event listener %r raised and is detached", attached)
            attached = None

    return emit
