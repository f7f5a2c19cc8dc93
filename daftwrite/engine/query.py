"""DuckDB queries as streams of Arrow batches."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import pyarrow as pa

from daftwrite.errors import ConfigError, DaftwriteError
from daftwrite.pipeline.source import Batch

__all__ = ["SMALLEST_ENGINE", "Bind", "Query", "QueryError", "quote_literal"]

Bind = Callable[[str], pa.Schema]

_BATCH_ROWS = 32_768
_INTERRUPT_SECONDS = 0.1
SMALLEST_ENGINE = 64 << 20


class QueryError(DaftwriteError):
    """Raised when the query engine can't read or compute a query; the engine's error is the cause."""


def quote_literal(value: Any) -> str:
    """A Python value as an SQL literal: text, number, boolean, list or mapping."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{quote_literal(str(k))}: {quote_literal(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(quote_literal(item) for item in value) + "]"
    raise ConfigError(f"an option takes text, numbers, lists or mappings, not {value!r}")


class Query:
    """A query over files, computed anew by each stream.

    Args:
        sql: a select statement.
        check: refuses a query whose files don't fit each other; gets a function from statement to schema, and the
            query's schema.
    """

    def __init__(self, sql: str, check: Callable[[Bind, pa.Schema], None] | None = None) -> None:
        self._sql = sql
        self._check = check

    def bind(self) -> pa.Schema:
        """The schema of the result, without computing it.

        Raises:
            QueryError: when files can't be read or the query is wrong.
        """
        with _connect(256 << 20) as connection:

            def bound(sql: str) -> pa.Schema:
                return connection.sql(f"select * from ({sql}) limit 0").to_arrow_table().schema

            try:
                schema = bound(self._sql)
                if self._check is not None:
                    self._check(bound, schema)
            except duckdb.Error as error:
                raise QueryError(_message(error)) from error
        return schema

    def stream(self, memory: int) -> QuerySource:
        """Compute the result as a source of batches.

        Args:
            memory: bytes that the engine may use; it spills to disk beyond.
        """
        return QuerySource(self._sql, self.bind(), memory)


class QuerySource:
    """The batches of one run of a query; a `Source`."""

    def __init__(self, sql: str, schema: pa.Schema, memory: int) -> None:
        self.schema: pa.Schema | None = schema
        self._sql = sql
        self._connection = _connect(max(memory, SMALLEST_ENGINE))
        self._reader: pa.RecordBatchReader | None = None
        # A pull that was given up goes on in this thread until the interrupt reaches it; closing comes after it.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="daftwrite query")
        self._closed = False

    async def next(self) -> Batch | None:
        """The next batch; see `Source.next`."""
        return await asyncio.wrap_future(self._thread.submit(self._next))

    async def close(self) -> None:
        """Interrupt the query; see `Source.close`."""
        self._closed = True
        ended = asyncio.wrap_future(self._thread.submit(self._end))
        while not ended.done():
            # An interrupt that comes before the query has begun is lost, so it is repeated.
            self._connection_interrupt()
            await asyncio.wait([ended], timeout=_INTERRUPT_SECONDS)
        self._thread.shutdown(wait=True)
        ended.result()

    def _next(self) -> pa.RecordBatch | None:
        try:
            if self._closed:
                return None
            if self._reader is None:
                self._reader = self._connection.sql(self._sql).to_arrow_reader(_BATCH_ROWS)
            return self._reader.read_next_batch()
        except StopIteration:
            return None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise QueryError(_message(error)) from error

    def _connection_interrupt(self) -> None:
        # The connection may be closed already.
        with contextlib.suppress(duckdb.Error):
            self._connection.interrupt()

    def _end(self) -> None:
        self._reader = None
        self._connection.close()


def _connect(memory: int) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory}B",
            "preserve_insertion_order": "true",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        },
    )
    connection.execute("set timezone = 'UTC'")
    # It would print to standard output, also where that is a pipe.
    connection.execute("set enable_progress_bar = false")
    return connection


def _message(error: Exception) -> str:
    return str(error).strip().split("\n\n")[0]
