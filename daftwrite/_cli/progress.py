"""The progress line on a terminal."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from daftwrite.pipeline.events import BatchRead, Committed, Event, FilePublished, RowGroupEncoded

__all__ = ["Progress"]

_MB = 1e6


class Progress:
    """Shows rows, MB in, MB written, files and rate while a write runs.

    Args:
        enabled: whether anything is shown.

    Attributes:
        committed: whether the commit landed.
    """

    def __init__(self, *, enabled: bool) -> None:
        self.committed = False
        self._rows = 0
        self._read = 0
        self._written = 0
        self._files = 0
        self._begun = time.monotonic()
        self._live = Live(
            get_renderable=self._render, console=Console(stderr=True), refresh_per_second=8, transient=True
        )
        self._enabled = enabled

    def __enter__(self) -> Self:
        if self._enabled:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._enabled:
            self._live.stop()

    def on_event(self, event: Event) -> None:
        """Count an event; a listener for `on_event`."""
        if isinstance(event, BatchRead):
            self._rows += event.rows
            self._read += event.nbytes
        elif isinstance(event, RowGroupEncoded):
            self._written += event.encoded_nbytes
        elif isinstance(event, FilePublished):
            self._files += 1
        elif isinstance(event, Committed):
            self.committed = True

    def _render(self) -> Text:
        seconds = max(time.monotonic() - self._begun, 1e-9)
        return Text(
            f"{self._rows:,} rows  {self._read / _MB:,.0f} MB in  {self._written / _MB:,.1f} MB written  "
            f"{self._files:,} files  {self._rows / seconds:,.0f} rows/s"
        )
