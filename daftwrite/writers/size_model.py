"""What a byte in memory becomes on disk, learned from row group to row group."""

from __future__ import annotations

__all__ = ["SizeModel"]

_WEIGHT = 0.5
_PRIOR = 0.5


class SizeModel:
    """A running ratio of encoded to in-memory bytes, with its relative deviation.

    Args:
        parent: the model to ask while this one has learned nothing.
    """

    def __init__(self, parent: SizeModel | None = None) -> None:
        self._parent = parent
        self._ratio: float | None = None
        self._deviation = 0.0

    @property
    def learned(self) -> bool:
        """Whether any row group has been seen, here or by the parent."""
        return self._ratio is not None or (self._parent is not None and self._parent.learned)

    @property
    def ratio(self) -> float:
        """Encoded bytes for each byte in memory."""
        if self._ratio is not None:
            return self._ratio
        return self._parent.ratio if self._parent is not None else _PRIOR

    @property
    def deviation(self) -> float:
        """How far the ratio was off lately, as a fraction; 1 while nothing is learned."""
        if self._ratio is not None:
            return self._deviation
        return self._parent.deviation if self._parent is not None and self._parent.learned else 1.0

    def learn(self, arrow_nbytes: int, encoded_nbytes: int) -> None:
        """Add what one row group became."""
        if self._parent is not None:
            self._parent.learn(arrow_nbytes, encoded_nbytes)
        if arrow_nbytes <= 0 or encoded_nbytes <= 0:
            return
        seen = encoded_nbytes / arrow_nbytes
        if self._ratio is None:
            self._ratio = seen
            self._deviation = 0.1
            return
        off = abs(seen - self._ratio) / self._ratio
        self._deviation += _WEIGHT * (off - self._deviation)
        self._ratio += _WEIGHT * (seen - self._ratio)

    def encoded(self, arrow_nbytes: float) -> float:
        """Expected encoded bytes of so many bytes in memory."""
        return arrow_nbytes * self.ratio

    def arrow(self, encoded_nbytes: float) -> float:
        """Bytes in memory that are expected to become so many encoded."""
        return encoded_nbytes / self.ratio
