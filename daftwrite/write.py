"""One write, from its first batch to its commit or to no trace of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import cast

import anyio
import pyarrow as pa
from anyio.abc import TaskGroup

from daftwrite.blocking import run_to_its_end
from daftwrite.errors import CommitStateUnknown, WriterClosed
from daftwrite.pipeline.budget import Reservation
from daftwrite.pipeline.events import BatchRead, Committed, EventHook, quietly
from daftwrite.pipeline.micropartition import MicroPartition, bounded_slices, decoded_nbytes
from daftwrite.pipeline.resources import Resources
from daftwrite.pipeline.source import Batch
from daftwrite.plan import WritePlan
from daftwrite.result import DataFile, WriteResult
from daftwrite.storage.base import Storage
from daftwrite.storage.ledger import Ledger
from daftwrite.tables.base import Commit, Landed, Table, WriteOptions
from daftwrite.writers.base import WriteContext
from daftwrite.writers.file import FileWriter
from daftwrite.writers.partition import PartitionSizer
from daftwrite.writers.partition_key import UNPARTITIONED
from daftwrite.writers.split import PartitionSplitter

__all__ = ["Write"]

_CLEANUP_SECONDS = 60
_LARGEST_MICRO_PARTITION = 16 << 20
_SMALL_NBYTES = 1 << 16


class Write:
    """The state of one write. The steps are `open`, `take` for each batch, `finish`, `commit`; or `stop` and `undo`.

    Args:
        table: the target.
        options: sizes, codec and the like.
        resources: budget and threads.
        on_event: the event hook.
    """

    def __init__(self, table: Table, options: WriteOptions, resources: Resources, on_event: EventHook | None) -> None:
        self.tasks: TaskGroup | None = None
        self.result: WriteResult | None = None
        self.ended = False
        self.read_seconds = 0.0
        self._table = table
        self._options = options
        self._resources = resources
        self._emit = quietly(on_event)
        self._plan: WritePlan | None = None
        self._storage: Storage | None = None
        self._context: WriteContext | None = None
        self._sizer: PartitionSizer | None = None
        self._splitter: PartitionSplitter | None = None
        self._files: list[DataFile] = []
        self._kept_files: list[DataFile] = []
        self.skipped = False
        self._prepare_seconds = 0.0
        self._begun = time.perf_counter()
        # Batches are taken one after another, and the last one before the write ends.
        self.turn = anyio.Lock()
        self._interrupt: Callable[[], None] = lambda: None
        self._stopped = False

    async def open(self) -> None:
        """Refuse a target that can't be written; skip one that is to be left alone."""
        self.skipped = not await self._table.check(self._resources)

    async def plan(self, schema: pa.Schema) -> None:
        """Plan the write for batches of a schema, once."""
        if self._plan is not None or self.skipped:
            return
        plan = await self._table.prepare(schema, self._options, self._resources)
        assert self.tasks is not None
        self._plan = plan
        self._storage = self._table.storage(plan, self._resources)
        self._context = WriteContext(
            resources=self._resources,
            format=plan.format,
            limits=plan.sizes.limits(self._resources),
            naming=plan.naming,
            ledger=Ledger(self._storage),
            publish=plan.publish_on_close,
            emit=self._emit,
            tasks=self.tasks,
            on_failure=lambda: self._interrupt(),
        )
        if plan.partitioning:
            self._splitter = PartitionSplitter(plan.partitioning, plan.stored_schema, plan.body)
        self._sizer = PartitionSizer(self._context, self._splitter)

    def interruptible(self, interrupt: Callable[[], None]) -> None:
        """Set what ends a wait for the source when a background job fails."""
        self._interrupt = interrupt

    def check(self) -> None:
        """Raise the failure of a background job, if there is one."""
        if self._context is not None:
            self._context.check()

    async def take(self, batch: Batch) -> None:
        """Take all rows of a batch over."""
        if self.ended:
            self.check()
            raise WriterClosed("the writer is closed or was aborted")
        if self.skipped:
            return
        await self.plan(batch.schema)
        assert self._plan is not None
        self.check()
        projection = self._plan.projection
        projection.check(batch.schema)
        self._emit(BatchRead(batch.num_rows, batch.nbytes))
        try:
            for piece in bounded_slices(batch, self._micro_partition_nbytes()):
                await self._take_piece(piece)
        except BaseException:
            self.stop()
            raise

    def _micro_partition_nbytes(self) -> int:
        return max(1, min(_LARGEST_MICRO_PARTITION, self._resources.budget.limit // 16))

    async def _take_piece(self, piece: Batch) -> None:
        assert self._plan is not None
        assert self._sizer is not None
        projection = self._plan.projection
        expected = decoded_nbytes(piece) + projection.added_nbytes(piece.num_rows)
        worst = expected + self._plan.format.encoded_bound(self._plan.stored_schema, piece.num_rows, expected)
        reservation = await self._resources.budget.reserve(worst)
        try:
            self.check()
            begun = time.perf_counter()
            if piece.nbytes < _SMALL_NBYTES:
                table = projection.apply(piece)
            else:
                table = await self._resources.prepare(lambda: projection.apply(piece))
            nbytes = int(table.nbytes)
            bound = self._plan.format.encoded_bound(self._plan.stored_schema, table.num_rows, nbytes)
            reservation.shrink_to(nbytes + bound)
            self._prepare_seconds += time.perf_counter() - begun
            await self._pass_on(table, reservation)
        except BaseException:
            reservation.release()
            raise

    async def _pass_on(self, table: pa.Table, reservation: Reservation) -> None:
        assert self._sizer is not None
        self._refuse_stopped()
        await self._sizer.write(MicroPartition(table, reservation))
        self._refuse_stopped()
        self._resources.budget.ask_holders()

    def _refuse_stopped(self) -> None:
        if self._stopped:
            if self._sizer is not None:
                self._sizer.drop()
            raise WriterClosed("the writer was aborted")

    async def finish(self) -> None:
        """Write all that is held and end all files; a batch that comes later is refused."""
        async with self.turn:
            self.ended = True
            await self._finish()

    async def _finish(self) -> None:
        if self._stopped:
            self.check()
            raise WriterClosed("the writer was aborted")
        if self.skipped:
            return
        if self._sizer is None or self._plan is None or self._context is None:
            self._table.refuse_empty()
            return
        self._files = await self._sizer.close()
        if not self._files:
            self._table.refuse_empty()
        self._kept_files = await self._keep_rows(self._plan, self._context)
        if not self._files and not self._kept_files and self._plan.write_empty_file:
            self._files = [await self._empty_file(self._plan, self._context)]

    async def _keep_rows(self, plan: WritePlan, context: WriteContext) -> list[DataFile]:
        """Write the rows that stay of files that are replaced, into files of their own."""
        self._sizer = PartitionSizer(context, self._splitter)
        async for table in self._table.kept_rows(plan, self._files, self._resources):
            for piece in bounded_slices(table, self._micro_partition_nbytes()):
                await self._keep_piece(plan, pa.table(piece))
        return await self._sizer.close()

    async def _keep_piece(self, plan: WritePlan, table: pa.Table) -> None:
        nbytes = decoded_nbytes(table)
        bound = plan.format.encoded_bound(plan.stored_schema, table.num_rows, nbytes)
        reservation = await self._resources.budget.reserve(nbytes + bound)
        try:
            await self._pass_on(table, reservation)
        except BaseException:
            reservation.release()
            raise

    async def _empty_file(self, plan: WritePlan, context: WriteContext) -> DataFile:
        file = FileWriter(context, UNPARTITIONED, context.model)
        empty = plan.stored_schema.empty_table().select(list(plan.body))
        file.submit(empty, 0, await self._resources.budget.reserve(1))
        file.finish()
        await file.settled()
        context.check()
        return cast(DataFile, file.data_file)

    async def commit(self) -> None:
        """Make the files part of the target, whatever is cancelled meanwhile."""
        begun = time.perf_counter()
        landed = Landed(None)
        cancelled = None
        if self._plan is not None and self._context is not None:
            commit = Commit(self._plan, self._files, self._kept_files, self._context.ledger, self._resources)
            landed, cancelled = await run_to_its_end(lambda: self._table.commit(commit))
        ended = time.perf_counter()
        self._emit(Committed(len(self._files), landed.snapshot_id))
        self.result = WriteResult(
            target=self._table.name,
            write_id="" if self._plan is None else self._plan.write_id,
            files=tuple(self._files),
            snapshot_id=landed.snapshot_id,
            kept_files=tuple(self._kept_files),
            replaced=landed.replaced,
            skipped=self.skipped,
            seconds={
                "read": self.read_seconds,
                "prepare": self._prepare_seconds + (0.0 if self._context is None else self._context.split_seconds),
                "encode": 0.0 if self._context is None else self._context.encode_seconds,
                "commit": ended - begun,
                "total": ended - self._begun,
            },
            peak_accounted_nbytes=self._resources.budget.peak,
        )
        if cancelled is not None:
            raise cancelled

    def stop(self) -> None:
        """Let no further work begin; what runs ends by itself."""
        if self._stopped:
            return
        self._stopped = self.ended = True
        if self._context is not None:
            self._context.stopped = True
        if self._sizer is not None:
            self._sizer.drop()

    async def undo(self, error: BaseException) -> None:
        """Delete all that this write made, unless its commit may have landed; report what can't be deleted."""
        if isinstance(error, CommitStateUnknown):
            return
        await run_to_its_end(lambda: self._undo(error))

    async def _undo(self, error: BaseException) -> None:
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True) as scope:
            if self._context is not None:
                for path, failure in await self._context.ledger.undo():
                    error.add_note(f"could not delete {path}: {failure}")
            if self._storage is not None:
                await self._storage.remove_made_directories()
            try:
                await self._table.roll_back(self._resources)
            except Exception as failure:
                error.add_note(f"could not undo what the write prepared: {failure}")
        if scope.cancelled_caught:
            error.add_note(f"cleaning up took more than {_CLEANUP_SECONDS} s and was given up")
