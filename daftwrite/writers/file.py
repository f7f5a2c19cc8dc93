"""One data file: row groups encode side by side and are appended in order."""

from __future__ import annotations

from collections import deque
from typing import cast

import anyio
import pyarrow as pa

from daftwrite.formats.base import EncodedRowGroup, FileSummary
from daftwrite.pipeline.budget import Reservation
from daftwrite.pipeline.events import FileOpened, FilePublished, RowGroupEncoded
from daftwrite.result import DataFile
from daftwrite.storage.base import Upload
from daftwrite.writers.base import WriteContext
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.size_model import SizeModel

__all__ = ["FileWriter"]


class FileWriter:
    """Writes one file; `submit` and `finish` only start jobs and never wait.

    Args:
        context: what the write shares.
        key: the file's partition.
        model: learns what row groups became.
    """

    def __init__(self, context: WriteContext, key: PartitionKey, model: SizeModel) -> None:
        self._context = context
        self._key = key
        self._model = model
        self._assembler = context.format.assembler()
        self._upload: Upload | None = None
        self._jobs: deque[anyio.Event] = deque()
        self._encoding_nbytes = 0
        self._written_nbytes = 0
        self.path = context.naming.path(key, context.next_sequence())
        self.data_file: DataFile | None = None

    @property
    def expected_nbytes(self) -> float:
        """Bytes written, and what those still being encoded are expected to become."""
        return self._written_nbytes + self._model.encoded(self._encoding_nbytes)

    @property
    def uncertain_nbytes(self) -> float:
        """How far `expected_nbytes` may be off."""
        return self._model.encoded(self._encoding_nbytes) * self._model.deviation

    def submit(self, table: pa.Table, arrow_nbytes: int, reservation: Reservation) -> None:
        """Encode rows as one row group and append it after those submitted before."""
        reservation.will_return()
        self._encoding_nbytes += arrow_nbytes
        before, done = self._link()
        tables = [table]

        async def job() -> None:
            try:
                await self._encode_and_append(tables, arrow_nbytes, reservation, before)
            finally:
                reservation.release()
                done.set()

        self._context.start(job)

    def finish(self) -> None:
        """End the file after all its row groups."""
        before, done = self._link()

        async def job() -> None:
            try:
                if before is not None:
                    await before.wait()
                if not self._halted():
                    await self._end()
            finally:
                done.set()

        self._context.start(job)

    @property
    def in_flight(self) -> int:
        """Row groups that may not be written yet."""
        return len(self._jobs)

    async def settled(self, leaving: int = 0) -> None:
        """Wait until everything submitted so far is written, but for the last `leaving` row groups."""
        while len(self._jobs) > leaving:
            await self._jobs[0].wait()
            self._jobs.popleft()

    def _link(self) -> tuple[anyio.Event | None, anyio.Event]:
        before = self._jobs[-1] if self._jobs else None
        done = anyio.Event()
        self._jobs.append(done)
        return before, done

    def _halted(self) -> bool:
        return self._context.stopped or self._context.failure is not None

    async def _encode_and_append(
        self, tables: list[pa.Table], arrow_nbytes: int, reservation: Reservation, before: anyio.Event | None
    ) -> None:
        if self._halted():
            return
        encode = self._context.format.encode
        outcome, seconds = await self._context.timed_encode(lambda: encode(tables.pop()), arrow_nbytes)
        encoded = cast(EncodedRowGroup, outcome)
        reservation.shrink_to(encoded.nbytes)
        if before is not None:
            await before.wait()
        if self._halted():
            return
        pieces = await self._context.resources.blocking(lambda: self._assembler.append(encoded))
        await self._append(pieces)
        written = sum(piece.size for piece in pieces)
        self._encoding_nbytes -= arrow_nbytes
        self._model.learn(arrow_nbytes, written)
        event = RowGroupEncoded(self.path, encoded.rows, arrow_nbytes, written, seconds)
        self._context.emit(event)

    async def _append(self, pieces: object) -> None:
        upload = self._upload
        if upload is None:
            upload = self._upload = await self._context.ledger.create(self.path)
            self._context.emit(FileOpened(self.path))
        buffers = cast("list[pa.Buffer]", pieces)
        await upload.append(buffers)
        self._written_nbytes += sum(piece.size for piece in buffers)

    async def _end(self) -> None:
        tail, summary = await self._context.resources.blocking(self._assembler.finish)
        await self._append(tail)
        ledger = self._context.ledger
        pending = await ledger.finish(self.path)
        if self._context.publish:
            await ledger.publish(pending)
        self.data_file = self._describe(summary, pending.nbytes)
        self._context.emit(FilePublished(self.path, summary.rows, pending.nbytes))

    def _describe(self, summary: FileSummary, nbytes: int) -> DataFile:
        return DataFile(
            path=self.path,
            format=self._context.format.name,
            rows=summary.rows,
            nbytes=nbytes,
            partition=dict(self._key.texts),
            partition_values=self._key.values,
            statistics=summary.statistics,
            split_offsets=summary.split_offsets,
        )
