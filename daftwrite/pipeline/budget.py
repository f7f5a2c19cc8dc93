"""The byte budget: what bounds the memory of a write."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

__all__ = ["ByteBudget", "Reservation"]


class Reservation:
    """Bytes taken from a budget, given back with `release`."""

    __slots__ = ("_budget", "_returning", "nbytes")

    def __init__(self, budget: ByteBudget, nbytes: int) -> None:
        self._budget = budget
        self._returning = False
        self.nbytes = nbytes

    def shrink_to(self, nbytes: int) -> None:
        """Give back all but `nbytes`; a reservation never grows."""
        if nbytes < self.nbytes:
            freed, self.nbytes = self.nbytes - nbytes, nbytes
            self._budget._give_back(freed, self._returning)

    def split(self, nbytes: int) -> Reservation:
        """Hand `nbytes` of this reservation (or all that it has) on to a new one."""
        part = Reservation(self._budget, min(nbytes, self.nbytes))
        part._returning = self._returning
        self.nbytes -= part.nbytes
        return part

    def merge(self, other: Reservation) -> None:
        """Take over all bytes of another reservation in the same state."""
        self.nbytes += other.nbytes
        other.nbytes = 0

    def will_return(self) -> None:
        """Say that these bytes come back by themselves, with no further budget needed."""
        if not self._returning:
            self._returning = True
            self._budget._expect(self.nbytes)

    def release(self) -> None:
        """Give all bytes back; a second call does nothing."""
        self.shrink_to(0)


@dataclass(eq=False)
class _Holder:
    reclaim: Callable[[int], None]
    loop: asyncio.AbstractEventLoop
    asked: bool = False


@dataclass(eq=False)
class _Ticket:
    nbytes: int
    loop: asyncio.AbstractEventLoop
    granted: asyncio.Future[None] = field(init=False)

    def __post_init__(self) -> None:
        self.granted = self.loop.create_future()

    def grant(self) -> None:
        if not self.granted.done():
            self.granted.set_result(None)


class ByteBudget:
    """Bytes that many tasks, also of several event loops, share in the order they asked.

    The rules that keep it from dead-locking:

    - who reserves takes the worst case of all that the bytes will become, so that no holder has to ask again;
    - tickets are granted first come, first served;
    - an item larger than the whole budget passes alone;
    - holders of bytes that only more input would free register a `reclaim` callback, which is asked to start
      returning bytes when a ticket has to wait.

    Args:
        limit: bytes that may be in use at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.peak = 0
        self._in_use = 0
        self._returning = 0
        self._tickets: deque[_Ticket] = deque()
        self._holders: list[_Holder] = []
        self._lock = threading.RLock()

    @property
    def in_use(self) -> int:
        """Bytes reserved and not yet given back."""
        return self._in_use

    @property
    def waiting(self) -> int:
        """Number of tickets not granted yet."""
        return len(self._tickets)

    async def reserve(self, nbytes: int) -> Reservation:
        """Wait until `nbytes` are free, or nothing else is in use, and take them."""
        with self._lock:
            if not self._tickets and self._fits(nbytes):
                self._take(nbytes)
                return Reservation(self, nbytes)
            ticket = _Ticket(nbytes, asyncio.get_running_loop())
            self._tickets.append(ticket)
            self._ask_holders()
        try:
            await ticket.granted
        except BaseException:
            self._withdraw(ticket)
            raise
        return Reservation(self, nbytes)

    def register(self, reclaim: Callable[[int], None]) -> Callable[[], None]:
        """Register a holder of reclaimable bytes.

        Args:
            reclaim: called on the current event loop with a number of bytes; it marks reservations of about that
                many with `Reservation.will_return` and starts what frees them.

        Returns:
            A function that ends the registration.
        """
        holder = _Holder(reclaim, asyncio.get_running_loop())
        with self._lock:
            self._holders.append(holder)

        def unregister() -> None:
            with self._lock:
                if holder in self._holders:
                    self._holders.remove(holder)

        return unregister

    def _fits(self, nbytes: int) -> bool:
        return self._in_use == 0 or self._in_use + nbytes <= self.limit

    def _take(self, nbytes: int) -> None:
        self._in_use += nbytes
        self.peak = max(self.peak, self._in_use)

    def _withdraw(self, ticket: _Ticket) -> None:
        with self._lock:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                self._grant()
            else:
                self._give_back(ticket.nbytes, False)

    def _expect(self, nbytes: int) -> None:
        with self._lock:
            self._returning += nbytes

    def _give_back(self, nbytes: int, returning: bool) -> None:
        with self._lock:
            self._in_use -= nbytes
            if returning:
                self._returning -= nbytes
            self._grant()

    def _grant(self) -> None:
        while self._tickets and self._fits(self._tickets[0].nbytes):
            ticket = self._tickets.popleft()
            self._take(ticket.nbytes)
            _call_on(ticket.loop, ticket.grant)
        self._ask_holders()

    def ask_holders(self) -> None:
        """Ask holders again, for one that holds more than it did when a ticket began to wait."""
        with self._lock:
            self._ask_holders()

    def _ask_holders(self) -> None:
        if not self._tickets:
            return
        for holder in self._holders:
            if not holder.asked and self._shortage() > 0:
                holder.asked = True
                _call_on(holder.loop, partial(self._ask, holder))

    def _shortage(self) -> int:
        if not self._tickets:
            return 0
        needed = min(self._tickets[0].nbytes, self.limit)
        return self._in_use - self._returning + needed - self.limit

    def _ask(self, holder: _Holder) -> None:
        with self._lock:
            holder.asked = False
            shortage = self._shortage()
        if shortage > 0:
            holder.reclaim(shortage)


def _call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    if loop.is_closed():
        return
    loop.call_soon_threadsafe(callback)
