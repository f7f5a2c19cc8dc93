"""The embedding API: push micro-partitions into a target, from asynchronous or synchronous code."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
from anyio.from_thread import BlockingPortal

from daftwrite.blocking import joined_portal
from daftwrite.errors import WriterClosed
from daftwrite.pipeline.events import EventHook
from daftwrite.pipeline.resources import DEFAULT_MEMORY, ENGINE_SHARE, Resources
from daftwrite.pipeline.source import as_batch
from daftwrite.result import WriteResult
from daftwrite.sizes import Size
from daftwrite.tables.base import WriteOptions
from daftwrite.targets import Target, as_target
from daftwrite.write import Write

if TYPE_CHECKING:
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["SyncWriter", "Writer", "WriterContext", "as_resources", "open_writer"]


def as_resources(memory: Size | Resources | None, *, engine_share: float = ENGINE_SHARE) -> Resources:
    """Resources from what `memory` takes; `engine_share` is for those made here."""
    if isinstance(memory, Resources):
        return memory
    return Resources(DEFAULT_MEMORY if memory is None else memory, engine_share=engine_share)


class Writer:
    """Takes batches from asynchronous code; made by `async with open_writer(...)`.

    Calls of `write` from several tasks are served in order. A cancelled `write` either has taken its batch wholly, or
    the writer is aborted.
    """

    def __init__(self, write: Write) -> None:
        self._write = write

    async def write(self, batch: Any) -> None:
        """Take a batch over; returns when there is room for the next one.

        Args:
            batch: a pyarrow `RecordBatch` or `Table`, or anything with `__arrow_c_stream__` or `__arrow_c_array__`,
                of any size. All batches have the schema of the first one.

        Raises:
            SchemaError: when the schema doesn't fit the target, or differs from the first batch's.
            DataError: when a value doesn't fit its column.
            WriterClosed: after the writer was closed or aborted.
            DaftwriteError: when writing earlier batches has failed meanwhile.
        """
        data = as_batch(batch)
        try:
            await self._write.turn.acquire()
        except BaseException:
            self._write.stop()
            raise
        try:
            with anyio.CancelScope(shield=True):
                await self._write.take(data)
        finally:
            self._write.turn.release()

    @property
    def result(self) -> WriteResult:
        """The outcome, once the `async with` block has ended.

        Raises:
            WriterClosed: before that, or when the write failed.
        """
        if self._write.result is None:
            raise WriterClosed("there is no result before the writer is closed")
        return self._write.result

    def __enter__(self) -> None:
        raise WriterClosed("this writer is asynchronous: open it with 'async with', or use 'with open_writer(...)'")

    def __exit__(self, *exc: object) -> None:
        """Never reached, as `__enter__` raises."""


class SyncWriter:
    """Takes batches from synchronous code; made by `with open_writer(...)`."""

    def __init__(self, portal: BlockingPortal, writer: Writer) -> None:
        self._portal = portal
        self._writer = writer

    def write(self, batch: Any) -> None:
        """Take a batch over; see `Writer.write`."""
        if self._writer._write.ended:
            raise WriterClosed("the writer is closed")
        self._portal.call(self._writer.write, batch)

    @property
    def result(self) -> WriteResult:
        """The outcome, once the `with` block has ended; see `Writer.result`."""
        return self._writer.result

    async def __aenter__(self) -> None:
        raise WriterClosed("this writer is synchronous: open it with 'with', or use 'async with open_writer(...)'")

    async def __aexit__(self, *exc: object) -> None:
        """Never reached, as `__aenter__` raises."""


class WriterContext:
    """Opens a writer: `async with` gives a `Writer`, `with` a `SyncWriter`. Made by `open_writer`."""

    def __init__(self, target: Target, options: WriteOptions, resources: Resources, on_event: EventHook | None) -> None:
        self._table = target.open(options)
        self._options = options
        self._resources = resources
        self._on_event = on_event
        self._write: Write | None = None
        self._tasks: anyio.abc.TaskGroup | None = None
        self._stack = ExitStack()

    async def __aenter__(self) -> Writer:
        if self._write is not None:
            raise WriterClosed("a writer context can be entered only once")
        self._write = Write(self._table, self._options, self._resources, self._on_event)
        await self._write.open()
        self._tasks = anyio.create_task_group()
        self._write.tasks = await self._tasks.__aenter__()
        return Writer(self._write)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        assert self._write is not None
        assert self._tasks is not None
        failed: BaseException | None = error
        if failed is None:
            try:
                await self._write.finish()
            except BaseException as raised:
                failed = raised
        self._write.stop()
        try:
            await self._tasks.__aexit__(None, None, None)
            if failed is None:
                await self._write.commit()
        except BaseException as raised:
            failed = failed or raised
        if failed is None:
            return False
        if self._write.result is None:
            await self._write.undo(failed)
        if failed is error:
            return False
        raise failed

    def __enter__(self) -> SyncWriter:
        with ExitStack() as stack:
            portal = stack.enter_context(joined_portal())
            context: AbstractContextManager[Writer] = portal.wrap_async_context_manager(self)
            writer = stack.enter_context(context)
            self._stack = stack.pop_all()
        return SyncWriter(portal, writer)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return bool(self._stack.__exit__(kind, error, trace))


def open_writer(
    target: Target | PyIcebergTable | str,
    *,
    target_file_size: Size | None = None,
    row_group_size: Size | None = None,
    row_group_rows: int | None = None,
    compression: str | None = None,
    compression_level: int | None = None,
    coerce_timestamps: str | None = None,
    memory: Size | Resources | None = None,
    on_event: EventHook | None = None,
) -> WriterContext:
    """Open a target to push batches into.

    Nothing is visible before the block ends without an exception; then all of it is. An exception in the block, or a
    cancellation, deletes what was written.

    Args:
        target: an `IcebergTarget`, `ParquetTarget` or `CsvTarget`, or for an append to an existing Iceberg table just
            the pyiceberg `Table` or its identifier.
        target_file_size: bytes on disk at which a file ends, such as `"64 MiB"`. Default: the table's property, else
            512 MiB.
        row_group_size: the most encoded bytes of a row group. Default: the table's property, else 128 MiB.
        row_group_rows: the most rows of a row group. Default: the table's property, else 1,048,576.
        compression: the codec. Default: the table's property, else zstd for Parquet and none for CSV.
        compression_level: the codec's level.
        coerce_timestamps: `"us"` or `"ms"`: finer times are cast to that unit; one that isn't exact is an error.
        memory: bytes that the write may use, or `Resources` that several writes share. Default 1 GiB.
        on_event: called on the event loop with each event of `daftwrite.pipeline.events`.

    Returns:
        A context for `async with`, which gives a `Writer`, or `with`, which gives a `SyncWriter`.

    Raises:
        ConfigError: when an option can't be honoured.

    Example:
        ```python
        async with dw.open_writer("demo.events") as writer:
            async for batch in source:
                await writer.write(batch)
        print(writer.result.snapshot_id)
        ```
    """
    options = WriteOptions(
        target_file_size, row_group_size, row_group_rows, compression, compression_level, coerce_timestamps
    )
    return WriterContext(as_target(target), options, as_resources(memory, engine_share=0), on_event)
