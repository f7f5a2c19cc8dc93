"""The contract of every layer of the writer stack, and what the layers share."""

from __future__ import annotations

import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import anyio
import pyarrow as pa
from anyio.abc import TaskGroup

from daftwrite.errors import WriterClosed
from daftwrite.formats.base import Format
from daftwrite.pipeline.events import Event
from daftwrite.pipeline.micropartition import MicroPartition
from daftwrite.pipeline.resources import Resources
from daftwrite.result import DataFile
from daftwrite.storage.ledger import Ledger
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.size_model import SizeModel

__all__ = ["FileNaming", "Limits", "WriteContext", "Writer"]


_RELEASED_AFTER_NBYTES = 4 << 20


def _release_unused() -> None:
    # Allocators keep what a thread has freed, some until that very thread asks them not to.
    pa.default_memory_pool().release_unused()
    pa.system_memory_pool().release_unused()


class Writer(Protocol):
    """A layer of the stack. A layer is made with a factory of the layer below."""

    async def write(self, part: MicroPartition) -> None:
        """Take rows over, together with their budget."""
        ...

    async def close(self) -> list[DataFile]:
        """Write what is held and end all files."""
        ...


class FileNaming(Protocol):
    """Where a plan puts the files of a write."""

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The path of the file with this sequence number, unique within the write."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of files and row groups.

    Attributes:
        file_nbytes: bytes on disk at which a file ends.
        row_group_nbytes: the most encoded bytes of a row group.
        row_group_rows: the most rows of a row group.
        row_group_arrow_nbytes: the most bytes of a row group in memory, its share of the budget.
    """

    file_nbytes: int
    row_group_nbytes: int
    row_group_rows: int
    row_group_arrow_nbytes: int


@dataclass
class WriteContext:
    """What all layers of one write share.

    Attributes:
        resources: budget and threads.
        format: encodes and assembles.
        limits: sizes.
        naming: gives files their paths.
        ledger: hands out uploads.
        publish: whether files become visible when they close (table formats) or later (plain directories).
        emit: the event hook.
        tasks: where background jobs run.
        model: how many encoded bytes a byte in memory becomes, over the whole write.
        failure: the first error of a background job.
        encode_seconds: time spent encoding, in all threads together.
        split_seconds: time spent splitting by partition.
        stopped: whether no further work may begin.
        on_failure: called once, when the first background job fails.
    """

    resources: Resources
    format: Format
    limits: Limits
    naming: FileNaming
    ledger: Ledger
    publish: bool
    emit: Callable[[Event], None]
    tasks: TaskGroup
    model: SizeModel = field(default_factory=SizeModel)
    failure: BaseException | None = None
    encode_seconds: float = 0.0
    split_seconds: float = 0.0
    stopped: bool = False
    on_failure: Callable[[], None] = lambda: None
    _sequence: itertools.count[int] = field(default_factory=itertools.count)

    def next_sequence(self) -> int:
        """The number of the next file."""
        return next(self._sequence)

    def check(self) -> None:
        """Raise the failure of a background job, if there is one."""
        if self.failure is not None:
            raise self.failure
        if self.stopped:
            raise WriterClosed("the writer was aborted")

    def start(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run a job in the background, to its end even when the write is cancelled; keep its error."""

        async def run() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    await job()
                except Exception as error:
                    self.fail(error)

        self.tasks.start_soon(run)

    def fail(self, error: BaseException) -> None:
        """Record a failure; the first one counts."""
        if self.failure is None:
            self.failure = error
            self.on_failure()

    async def timed_encode(self, work: Callable[[], object], nbytes: int) -> tuple[object, float]:
        """Run work that encodes `nbytes` in a thread and count its seconds."""

        def timed() -> tuple[object, float]:
            begun = time.perf_counter()
            outcome = work()
            if nbytes >= _RELEASED_AFTER_NBYTES:
                _release_unused()
            return outcome, time.perf_counter() - begun

        outcome, seconds = await self.resources.encode(timed)
        self.encode_seconds += seconds
        return outcome, seconds
