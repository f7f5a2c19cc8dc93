"""The row-group sizer: collects rows until they make a row group."""

from __future__ import annotations

import pyarrow as pa

from daftwrite.pipeline.budget import Reservation
from daftwrite.pipeline.micropartition import MicroPartition
from daftwrite.writers.file import FileWriter

__all__ = ["RowGroupSizer"]

_SMALL_PIECES = 64


class RowGroupSizer:
    """Holds the rows of the row group to come and hands them to the file.

    Args:
        file: where row groups go.
    """

    def __init__(self, file: FileWriter) -> None:
        self.file = file
        self.rows = 0
        self.nbytes = 0
        self._pieces: list[pa.Table] = []
        self._small = 0
        self._reservation: Reservation | None = None

    @property
    def reserved(self) -> int:
        """Budget of the rows held."""
        return 0 if self._reservation is None else self._reservation.nbytes

    def take(self, part: MicroPartition, nbytes: int) -> None:
        """Hold all rows of a micro-partition, of `nbytes` in memory."""
        self._pieces.append(part.table)
        self.rows += part.rows
        self.nbytes += nbytes
        if self._reservation is None:
            self._reservation = part.reservation
        else:
            self._reservation.merge(part.reservation)
        self._small = self._small + 1 if part.rows < 1024 else 0
        if self._small >= _SMALL_PIECES:
            self._compact()

    def flush(self) -> None:
        """Submit what is held as one row group; nothing happens when nothing is."""
        if self._reservation is None:
            return
        table, nbytes, reservation = pa.concat_tables(self._pieces), self.nbytes, self._reservation
        self._forget()
        try:
            self.file.submit(table, nbytes, reservation)
        except BaseException:
            reservation.release()
            raise

    def drop(self) -> None:
        """Give up what is held."""
        if self._reservation is not None:
            self._reservation.release()
        self._forget()

    def _forget(self) -> None:
        self._pieces, self._reservation = [], None
        self.rows = self.nbytes = self._small = 0

    def _compact(self) -> None:
        small = self._pieces[-self._small :]
        self._pieces[-self._small :] = [pa.concat_tables(small).combine_chunks()]
        self._small = 0
