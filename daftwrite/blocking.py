"""Asynchronous work behind synchronous calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

__all__ = ["run_blocking"]

T = TypeVar("T")


def run_blocking(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work from synchronous code, also where an event loop runs already.

    The loop lives in a private thread; an interrupt cancels the work and waits for its cleanup.
    """
    with start_blocking_portal() as portal:
        return portal.call(work)
