"""Asynchronous work behind synchronous calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio
from anyio.from_thread import start_blocking_portal

__all__ = ["run_blocking", "run_to_its_end"]

T = TypeVar("T")


def run_blocking(work: Callable[[], Awaitable[T]]) -> T:
    """Run asynchronous work from synchronous code, also where an event loop runs already.

    The loop lives in a private thread; an interrupt cancels the work and waits for its cleanup.
    """
    with start_blocking_portal() as portal:
        return portal.call(work)


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
