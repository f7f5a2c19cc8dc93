"""What a byte in memory becomes on disk, learned from row group to row group."""

from __future__ import annotations

__all__ = ["SizeModel"]

_WEIGHT = 0.5
_PRIOR = 0.5
_DECAY = 0.7
_LEAST_DEVIATION = 0.02
_UNTRIED_DEVIATION = 0.5
_TRIES = 3


class SizeModel:
    """A running ratio of encoded to in-memory bytes, and how far it was off lately.

    Args:
        parent: the model to ask while this one has learned nothing.
    """

    def __init__(self, parent: SizeModel | None = None) -> None:
        self._parent = parent
        self._ratio = _PRIOR
        self._deviation = 0.0
        self._tries = 0
        self._arrow_nbytes = 0

    @property
    def learned(self) -> bool:
        """Whether any row group has been seen, here or by the parent."""
        return self._source._tries > 0

    @property
    def tried(self) -> bool:
        """Whether the ratio has been tried often enough to be relied on."""
        return self._source._tries > _TRIES

    @property
    def ratio(self) -> float:
        """Encoded bytes for each byte in memory."""
        return self._source._ratio

    @property
    def deviation(self) -> float:
        """How far the ratio may be off, as a fraction; large until it was tried a few times."""
        deviation = max(self._source._deviation, _LEAST_DEVIATION)
        return deviation if self.tried else max(deviation, _UNTRIED_DEVIATION)

    @property
    def seen_arrow_nbytes(self) -> int:
        """Bytes in memory of all row groups that were learned from."""
        return self._source._arrow_nbytes

    @property
    def _source(self) -> SizeModel:
        return self if self._tries or self._parent is None else self._parent._source

    def learn(self, arrow_nbytes: int, encoded_nbytes: int) -> None:
        """Add what one row group became."""
        if self._parent is not None:
            self._parent.learn(arrow_nbytes, encoded_nbytes)
        if arrow_nbytes <= 0 or encoded_nbytes <= 0:
            return
        seen = encoded_nbytes / arrow_nbytes
        if not self._tries:
            self._ratio = seen
        off = abs(seen - self._ratio) / self._ratio
        self._deviation = max(off, _DECAY * self._deviation + (1 - _DECAY) * off)
        self._ratio += _WEIGHT * (seen - self._ratio)
        self._tries += 1
        self._arrow_nbytes += arrow_nbytes

    def encoded(self, arrow_nbytes: float) -> float:
        """Expected encoded bytes of so many bytes in memory."""
        return arrow_nbytes * self.ratio

    def arrow(self, encoded_nbytes: float) -> float:
        """Bytes in memory that are expected to become so many encoded."""
        return encoded_nbytes / self.ratio
