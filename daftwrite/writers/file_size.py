"""The file-size sizer: ends files at the target on disk."""

from __future__ import annotations

import math

from daftwrite.pipeline.micropartition import MicroPartition
from daftwrite.result import DataFile
from daftwrite.writers.base import WriteContext
from daftwrite.writers.file import FileWriter
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.row_group import RowGroupSizer
from daftwrite.writers.size_model import SizeModel

__all__ = ["FileSizeSizer"]

_FULL = 0.95
_UNCERTAIN = 0.01
_TOLERATED = 0.06
_PESSIMISM = 4
_GROWTH = 2
_PROBE_ARROW_NBYTES = 4 << 20
_PROBE_SHARE = 1 / 16


class FileSizeSizer:
    """Writes one partition as a sequence of files near the target size.

    It counts the bytes really written and, for row groups still being encoded, what the partition's size model expects.
    Where that is too uncertain to decide whether the file is full, it waits until they are written. Row groups are
    small enough that the model's error on one of them is within the tolerance; the first one is a probe.

    Args:
        context: what the write shares.
        key: the partition.
    """

    def __init__(self, context: WriteContext, key: PartitionKey) -> None:
        self._context = context
        self._key = key
        self._model = SizeModel(context.model)
        self._sizer: RowGroupSizer | None = None
        self._files: list[FileWriter] = []

    @property
    def held_budget(self) -> int:
        """Budget held by rows that wait for their row group."""
        return 0 if self._sizer is None else self._sizer.reserved

    async def write(self, part: MicroPartition) -> None:
        """Take rows over; see `Writer.write`."""
        row_nbytes = part.table.nbytes / part.rows
        while part.rows:
            sizer = await self._open()
            goal = self._goal(sizer.file)
            room = min(
                max(1, math.ceil((goal - sizer.nbytes) / max(row_nbytes, 1e-9))),
                max(1, self._context.limits.row_group_rows - sizer.rows),
            )
            head, part = _cut(part, room)
            sizer.take(head, int(head.rows * row_nbytes))
            if sizer.nbytes >= goal or sizer.rows >= self._context.limits.row_group_rows:
                sizer.flush()

    def flush(self) -> None:
        """Turn what is held into a row group at once, to free its memory."""
        if self._sizer is not None:
            self._sizer.flush()

    def end(self) -> None:
        """Submit what is held and end the last file, without waiting."""
        if self._sizer is not None:
            self._sizer.flush()
            self._sizer.file.finish()
            self._sizer = None

    async def close(self) -> list[DataFile]:
        """End the last file and wait for all of them; see `Writer.close`."""
        self.end()
        for file in self._files:
            await file.settled()
        self._context.check()
        return [file.data_file for file in self._files if file.data_file is not None]

    def drop(self) -> None:
        """Give up what is held."""
        if self._sizer is not None:
            self._sizer.drop()

    async def _open(self) -> RowGroupSizer:
        if self._sizer is not None and not self._sizer.rows and await self._is_full(self._sizer.file):
            self._sizer.file.finish()
            self._sizer = None
        if self._sizer is None:
            file = FileWriter(self._context, self._key, self._model)
            self._files.append(file)
            self._sizer = RowGroupSizer(file)
        return self._sizer

    async def _is_full(self, file: FileWriter) -> bool:
        target = self._context.limits.file_nbytes
        # More row groups in flight than threads would only make the file's size less certain.
        await file.settled(leaving=self._context.resources.threads + 1)
        pessimistic = file.expected_nbytes + _PESSIMISM * file.uncertain_nbytes
        near = pessimistic + self._context.limits.row_group_nbytes >= _FULL * target
        while file.in_flight and (not self._model.tried or (near and file.uncertain_nbytes > _UNCERTAIN * target)):
            await file.settled(leaving=file.in_flight - 1)
            self._context.check()
        return file.expected_nbytes >= _FULL * target

    def _goal(self, file: FileWriter) -> float:
        """Bytes in memory of the row group to come."""
        limits, model = self._context.limits, self._model
        remaining = max(1.0, limits.file_nbytes - file.expected_nbytes)
        probe = min(_PROBE_ARROW_NBYTES, limits.file_nbytes * _PROBE_SHARE)
        if not model.learned:
            return min(probe, limits.row_group_arrow_nbytes, model.arrow(limits.row_group_nbytes))
        tolerable = _TOLERATED * limits.file_nbytes / model.deviation
        most = min(
            model.arrow(min(limits.row_group_nbytes, tolerable)),
            limits.row_group_arrow_nbytes,
            max(probe, _GROWTH * model.seen_arrow_nbytes),
        )
        left = model.arrow(remaining)
        return left / math.ceil(left / most)


def _cut(part: MicroPartition, rows: int) -> tuple[MicroPartition, MicroPartition]:
    if rows >= part.rows:
        return part, MicroPartition(part.table.slice(part.rows), part.reservation.split(0))
    share = math.ceil(part.reservation.nbytes * rows / part.rows)
    head = MicroPartition(part.table.slice(0, rows), part.reservation.split(share))
    return head, MicroPartition(part.table.slice(rows), part.reservation)
