"""Asynchronous work behind synchronous calls."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

__all__ = ["joined_portal", "run_blocking", "run_to_its_end"]

T = TypeVar("T")

_JOIN_SECONDS = 1.0


def run_blocking(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work from synchronous code, also where an event loop runs already.

    The loop lives in a private thread; an interrupt cancels the work and waits for its cleanup.
    """
    with joined_portal() as portal:
        return portal.call(work)


@contextmanager
def joined_portal() -> Iterator[BlockingPortal]:
    """A portal whose worker threads have ended when it is closed.

    Python aborts when a thread comes back from native code while the interpreter is shutting down, so no worker may
    be on its way out when a program ends right after a write. A thread that was given up, as its source hangs, is
    not waited for.
    """
    loop: asyncio.AbstractEventLoop | None = None
    try:
        with start_blocking_portal() as portal:
            loop = portal.call(asyncio.get_running_loop)
            yield portal
    finally:
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in threading.enumerate():
            if loop is not None and getattr(thread, "loop", None) is loop:
                thread.join(max(0.0, deadline - time.monotonic()))


async def run_to_its_end(work: Callable[[], Coroutine[Any, Any, T]]) -> tuple[T, asyncio.CancelledError | None]:
    """Run work that must not be left halfway, also when the task is cancelled, by anyio or by asyncio itself.

    Returns:
        The work's result, and the cancellation that came meanwhile, for the caller to raise.
    """
    cancelled: asyncio.CancelledError | None = None
    task = asyncio.create_task(work())
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    return task.result(), cancelled
