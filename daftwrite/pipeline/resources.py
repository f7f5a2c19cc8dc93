"""What a write may use: memory, threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from daftwrite.errors import ConfigError
from daftwrite.pipeline.budget import ByteBudget
from daftwrite.sizes import Size, parse_size

__all__ = ["DEFAULT_MEMORY", "ENGINE_SHARE", "Resources"]

T = TypeVar("T")

DEFAULT_MEMORY = 1 << 30
ENGINE_SHARE = 0.35
_ACCOUNTED_SHARE = 0.75


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Resources:
    """Memory and threads that one write takes for itself, or several share.

    Args:
        memory: bytes that the writes together may use, such as `"512 MiB"`. About three quarters are accounted
            for; the rest is the share of allocators and libraries. Default 1 GiB.
        threads: encoding threads for each event loop. Default: the processors this process may use.
        engine_share: the part of the memory that is kept for the query engines of frames that read files.
    """

    def __init__(
        self, memory: Size = DEFAULT_MEMORY, *, threads: int | None = None, engine_share: float = ENGINE_SHARE
    ) -> None:
        self.memory = parse_size(memory, "memory")
        if not 0 <= engine_share < 1:
            raise ConfigError(f"engine_share must be from 0 to below 1, not {engine_share!r}")
        self.engine = ByteBudget(max(1, int(self.memory * engine_share)))
        self.threads = threads or _processors()
        self.budget = ByteBudget(max(1, int((self.memory - self.engine.limit) * _ACCOUNTED_SHARE)))
        self._limiters: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, anyio.CapacityLimiter]]
        self._limiters = WeakKeyDictionary()
        self._lock = threading.Lock()

    async def encode(self, work: Callable[[], T]) -> T:
        """Run CPU work of the writer stack in one of `threads` worker threads."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter("encode", self.threads))

    async def prepare(self, work: Callable[[], T]) -> T:
        """Run CPU work on incoming data, which must not queue behind encoding."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter("prepare", 1))

    async def blocking(self, work: Callable[[], T]) -> T:
        """Run blocking storage or catalog calls in a worker thread, to their end."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter("blocking", 16))

    def _limiter(self, kind: str, tokens: int) -> anyio.CapacityLimiter:
        loop = asyncio.get_running_loop()
        with self._lock:
            limiters = self._limiters.setdefault(loop, {})
            if kind not in limiters:
                limiters[kind] = anyio.CapacityLimiter(tokens)
            return limiters[kind]
