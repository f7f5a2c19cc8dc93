"""Sources: anything that gives Arrow data, pulled batch by batch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol, TypeAlias

import anyio
import anyio.to_thread
import pyarrow as pa

from daftwrite.errors import ConfigError

__all__ = ["Batch", "Source", "as_batch", "open_source"]

_END = object()

Batch: TypeAlias = pa.RecordBatch | pa.Table


class Source(Protocol):
    """A stream of batches.

    Attributes:
        schema: the schema, where it is known before the first batch.
    """

    schema: pa.Schema | None

    async def next(self) -> Batch | None:
        """The next batch, or None at the end; the source's own exception reaches the caller as it is."""
        ...

    async def close(self) -> None:
        """End the stream early; safe at any time."""
        ...


def as_batch(data: Any) -> Batch:
    """One batch from a pyarrow batch or table, or anything with `__arrow_c_stream__` or `__arrow_c_array__`.

    Raises:
        ConfigError: when it is none of these.
    """
    if isinstance(data, (pa.RecordBatch, pa.Table)):
        return data
    if hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.record_batch(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ConfigError(f"can't read Arrow data from {type(data).__name__}: {error}") from error
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return pa.table(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ConfigError(f"can't read Arrow data from {type(data).__name__}: {error}") from error
    raise ConfigError(f"can't read Arrow data from {type(data).__name__}: it has no __arrow_c_stream__")


def open_source(data: Any) -> Source:
    """Open a source.

    Args:
        data: an object with `__arrow_c_stream__` (pyarrow, Polars, DuckDB, pandas), a `RecordBatchReader`, a pyarrow
            Dataset or Scanner, or an iterable, also an asynchronous one, of batches or tables.

    Raises:
        ConfigError: when it is none of these.
    """
    if hasattr(data, "__aiter__"):
        return _AsyncSource(data.__aiter__())
    if hasattr(data, "scanner"):
        data = data.scanner()
    if hasattr(data, "to_reader") and not hasattr(data, "__arrow_c_stream__"):
        return _ReaderSource(data.to_reader())
    if isinstance(data, pa.RecordBatchReader):
        return _ReaderSource(data)
    if isinstance(data, pa.Table):
        return _SyncSource(iter(data.to_batches()), data.schema)
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return _ReaderSource(pa.RecordBatchReader.from_stream(data))
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ConfigError(f"can't read Arrow data from {type(data).__name__}: {error}") from error
    if hasattr(data, "__arrow_c_array__"):
        batch = as_batch(data)
        return _SyncSource(iter([batch]), batch.schema)
    if hasattr(data, "collect_batches"):
        raise ConfigError(f"{type(data).__name__} is not computed yet: pass its collect() or collect_batches()")
    if hasattr(data, "__iter__") and not isinstance(data, (str, bytes, dict)):
        return _SyncSource(iter(data), None)
    raise ConfigError(
        f"can't read Arrow data from {type(data).__name__}: it is no stream, reader or iterable of batches"
    )


class _SyncSource:
    def __init__(self, batches: Iterator[Any], schema: pa.Schema | None) -> None:
        self._batches = batches
        self.schema = schema

    async def next(self) -> Batch | None:
        return await _pull(lambda: next(self._batches, _END))

    async def close(self) -> None:
        close = getattr(self._batches, "close", None)
        if close is not None:
            try:
                close()
            except ValueError:
                # A generator that an abandoned pull still runs can't be closed; it ends with that pull.
                return


class _ReaderSource:
    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self._reader: pa.RecordBatchReader | None = reader
        self.schema = reader.schema

    async def next(self) -> Batch | None:
        return await _pull(self._read)

    def _read(self) -> Any:
        try:
            return _END if self._reader is None else self._reader.read_next_batch()
        except StopIteration:
            return _END

    async def close(self) -> None:
        # The producer may wait for its reader to go before it does anything else.
        self._reader = None


class _AsyncSource:
    def __init__(self, batches: AsyncIterator[Any]) -> None:
        self._batches = batches
        self.schema: pa.Schema | None = None

    async def next(self) -> Batch | None:
        try:
            return as_batch(await anext(self._batches))
        except StopAsyncIteration:
            return None

    async def close(self) -> None:
        close = getattr(self._batches, "aclose", None)
        if close is not None:
            await close()


async def _pull(pull: Callable[[], Any]) -> Batch | None:
    # A source may block for as long as it likes, so its thread is given up when the write is cancelled.
    found = await anyio.to_thread.run_sync(pull, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    return None if found is _END else as_batch(found)
