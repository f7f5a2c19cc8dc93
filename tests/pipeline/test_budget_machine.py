"""A state machine drives the budget through any order of its operations."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from daftwrite.pipeline.budget import ByteBudget, Reservation

LIMIT = 20


class BudgetMachine(RuleBasedStateMachine):
    held = Bundle("held")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.budget = ByteBudget(LIMIT)
        self.live: set[Reservation] = set()
        self.returning: set[Reservation] = set()
        self.waiting: list[tuple[int, asyncio.Task[Reservation]]] = []

    def settle(self) -> None:
        async def turn() -> None:
            for _ in range(6):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turn())
        granted = 0
        while self.waiting and self.waiting[0][1].done():
            _, task = self.waiting.pop(0)
            self.live.add(task.result())
            granted += 1
        if granted and self.budget.in_use > LIMIT:
            # Only an item larger than the budget passes it, and alone.
            assert granted == 1
            assert sum(reservation.nbytes > 0 for reservation in self.live) == 1
        # First come, first served: nobody behind a waiting ticket has been granted.
        assert not any(task.done() for _, task in self.waiting)

    @rule(nbytes=st.integers(1, 30))
    def reserve(self, nbytes: int) -> None:
        self.waiting.append((nbytes, self.loop.create_task(self.budget.reserve(nbytes))))
        self.settle()

    @rule(target=held)
    def pick(self) -> object:
        return multiple(*sorted(self.live, key=id)[:1])

    @rule(reservation=consumes(held))
    def release(self, reservation: Reservation) -> None:
        reservation.release()
        reservation.release()
        self.live.discard(reservation)
        self.returning.discard(reservation)
        self.settle()

    @rule(reservation=held, nbytes=st.integers(0, 30))
    def shrink(self, reservation: Reservation, nbytes: int) -> None:
        before = reservation.nbytes
        reservation.shrink_to(nbytes)
        assert reservation.nbytes == min(before, nbytes)
        self.settle()

    @rule(reservation=held, nbytes=st.integers(0, 30))
    def split(self, reservation: Reservation, nbytes: int) -> None:
        before = reservation.nbytes
        part = reservation.split(nbytes)
        assert part.nbytes + reservation.nbytes == before
        self.live.add(part)
        if reservation in self.returning:
            self.returning.add(part)

    @rule(reservation=held)
    def will_return(self, reservation: Reservation) -> None:
        reservation.will_return()
        self.returning.add(reservation)

    @rule(index=st.integers(0, 5))
    def cancel(self, index: int) -> None:
        if index < len(self.waiting):
            _, task = self.waiting.pop(index)
            task.cancel()
            self.settle()

    @invariant()
    def counts_what_is_held(self) -> None:
        assert self.budget.in_use == sum(reservation.nbytes for reservation in self.live)
        assert self.budget._returning == sum(reservation.nbytes for reservation in self.returning)
        assert self.budget.waiting == len(self.waiting)

    @invariant()
    def nobody_waits_for_what_is_free(self) -> None:
        if self.waiting:
            assert self.budget.in_use > 0
            assert self.budget.in_use + self.waiting[0][0] > LIMIT

    def teardown(self) -> None:
        while self.live or self.waiting:
            if not self.live:
                self.settle()
                assert self.live, "a ticket waits although nothing is in use"
            for reservation in list(self.live):
                reservation.release()
                self.live.discard(reservation)
            self.settle()
        assert self.budget.in_use == 0
        self.loop.close()


BudgetMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestBudgetMachine = BudgetMachine.TestCase
