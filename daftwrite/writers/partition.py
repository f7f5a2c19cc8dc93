"""The partition sizer: one sequence of files for each partition, within one budget."""

from __future__ import annotations

import math
import time

from daftwrite.pipeline.micropartition import MicroPartition
from daftwrite.result import DataFile
from daftwrite.writers.base import WriteContext
from daftwrite.writers.file_size import FileSizeSizer
from daftwrite.writers.partition_key import UNPARTITIONED, PartitionKey
from daftwrite.writers.split import PartitionSplitter

__all__ = ["PartitionSizer"]


class PartitionSizer:
    """Splits micro-partitions and feeds each partition's files; when the budget is short, the largest is flushed.

    Args:
        context: what the write shares.
        splitter: splits by partition, or None for an unpartitioned target.
    """

    def __init__(self, context: WriteContext, splitter: PartitionSplitter | None) -> None:
        self._context = context
        self._splitter = splitter
        # The splitter gives a partition's key as one object, which is quicker to look up than its values.
        self._sizers: dict[int, FileSizeSizer] = {}
        self._unregister = context.resources.budget.register(self._reclaim)

    async def write(self, part: MicroPartition) -> None:
        """Take rows over; see `Writer.write`."""
        if not part.rows:
            part.release()
            return
        if self._splitter is None:
            await self._sizer(UNPARTITIONED).write(part)
            return
        splitter = self._splitter
        begun = time.perf_counter()
        pieces = await self._context.resources.prepare(lambda: splitter.split(part.table))
        self._context.split_seconds += time.perf_counter() - begun
        share = part.reservation.nbytes / part.rows
        for i, (key, table) in enumerate(pieces):
            last = i == len(pieces) - 1
            nbytes = part.reservation.nbytes if last else math.floor(share * table.num_rows)
            piece = MicroPartition(table, part.reservation.split(nbytes))
            try:
                await self._sizer(key).write(piece)
            except BaseException:
                piece.release()
                raise

    async def close(self) -> list[DataFile]:
        """End all files; see `Writer.close`."""
        self._unregister()
        for sizer in self._sizers.values():
            sizer.end()
        files: list[DataFile] = []
        for sizer in self._sizers.values():
            files += await sizer.close()
        return files

    def drop(self) -> None:
        """Give up what is held."""
        self._unregister()
        for sizer in self._sizers.values():
            sizer.drop()

    def _sizer(self, key: PartitionKey) -> FileSizeSizer:
        sizer = self._sizers.get(id(key))
        if sizer is None:
            sizer = self._sizers[id(key)] = FileSizeSizer(self._context, key)
        return sizer

    def _reclaim(self, nbytes: int) -> None:
        for sizer in sorted(self._sizers.values(), key=lambda sizer: sizer.held_budget, reverse=True):
            held = sizer.held_budget
            if nbytes <= 0 or not held:
                return
            sizer.flush()
            nbytes -= held
