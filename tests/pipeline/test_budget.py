from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daftwrite.pipeline.budget import ByteBudget, Reservation

pytestmark = pytest.mark.anyio


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_grants_in_the_order_of_asking() -> None:
    budget = ByteBudget(100)
    first = await budget.reserve(80)
    order: list[int] = []

    async def ask(number: int, nbytes: int) -> Reservation:
        reservation = await budget.reserve(nbytes)
        order.append(number)
        return reservation

    large = asyncio.create_task(ask(1, 60))
    await settle()
    small = asyncio.create_task(ask(2, 10))
    await settle()
    assert order == []
    first.release()
    await settle()
    assert order == [1, 2]
    (await large).release()
    (await small).release()
    assert budget.in_use == 0
    assert budget.peak == 80


async def test_an_item_larger_than_the_budget_passes_alone() -> None:
    budget = ByteBudget(100)
    small = await budget.reserve(1)
    huge = asyncio.create_task(budget.reserve(500))
    await settle()
    assert not huge.done()
    small.release()
    reservation = await huge
    waiting = asyncio.create_task(budget.reserve(1))
    await settle()
    assert not waiting.done()
    reservation.release()
    (await waiting).release()
    assert budget.in_use == 0


async def test_holders_are_asked_for_what_is_short() -> None:
    budget = ByteBudget(100)
    held = await budget.reserve(90)
    asked: list[int] = []

    def reclaim(nbytes: int) -> None:
        asked.append(nbytes)
        part = held.split(nbytes)
        part.will_return()
        asyncio.get_running_loop().call_soon(part.release)

    unregister = budget.register(reclaim)
    reservation = await asyncio.wait_for(budget.reserve(30), 5)
    assert asked == [20]
    assert budget.in_use == 100
    unregister()
    held.release()
    reservation.release()
    assert budget.in_use == 0


async def test_bytes_that_return_anyway_are_not_asked_for() -> None:
    budget = ByteBudget(100)
    held = await budget.reserve(100)
    held.will_return()
    asked: list[int] = []
    budget.register(asked.append)
    waiting = asyncio.create_task(budget.reserve(50))
    await settle()
    assert asked == []
    held.release()
    (await waiting).release()


async def test_a_cancelled_ticket_blocks_nobody() -> None:
    budget = ByteBudget(100)
    held = await budget.reserve(60)
    large = asyncio.create_task(budget.reserve(90))
    await settle()
    small = asyncio.create_task(budget.reserve(40))
    await settle()
    large.cancel()
    await settle()
    assert small.done()
    (await small).release()
    held.release()
    assert budget.in_use == 0


async def test_a_ticket_cancelled_after_its_grant_gives_back() -> None:
    budget = ByteBudget(100)
    held = await budget.reserve(100)
    waiting = asyncio.create_task(budget.reserve(100))
    await settle()
    held.release()
    waiting.cancel()
    await settle()
    assert budget.in_use == 0


async def test_is_shared_by_the_loops_of_several_threads() -> None:
    budget = ByteBudget(1000)

    async def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(200):
            reservation = await budget.reserve(chance.randrange(1, 600))
            assert budget.in_use <= 1000
            await asyncio.sleep(0)
            reservation.release()

    await asyncio.wait_for(asyncio.gather(*(asyncio.to_thread(asyncio.run, work(i)) for i in range(4))), 60)
    assert budget.in_use == 0
    assert budget.waiting == 0


@settings(max_examples=150, deadline=None)
@given(
    limit=st.integers(1, 50),
    parts=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=40),
    seed=st.integers(0, 1000),
)
def test_a_pipeline_of_any_sizes_ends_and_keeps_the_budget(limit: int, parts: list[tuple[int, int]], seed: int) -> None:
    """Writers buffer by partition and flush only when asked or at their end: the shape of the writer stack."""

    async def run() -> None:
        budget = ByteBudget(limit)
        buffers: dict[int, Reservation] = {}
        jobs: list[asyncio.Task[None]] = []
        chance = random.Random(seed)
        largest = max(nbytes for nbytes, _ in parts)

        async def encode(reservation: Reservation) -> None:
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            reservation.shrink_to(reservation.nbytes // 2)
            await asyncio.sleep(0)
            reservation.release()

        def flush(key: int) -> int:
            reservation = buffers.pop(key)
            nbytes = reservation.nbytes
            reservation.will_return()
            jobs.append(asyncio.create_task(encode(reservation)))
            return nbytes

        def reclaim(nbytes: int) -> None:
            for key in sorted(buffers, key=lambda key: buffers[key].nbytes, reverse=True):
                if nbytes > 0:
                    nbytes -= flush(key)

        budget.register(reclaim)
        for nbytes, key in parts:
            reservation = await budget.reserve(nbytes)
            assert budget.in_use <= max(limit, largest)
            if key in buffers:
                buffers[key].merge(reservation)
            else:
                buffers[key] = reservation
        for key in list(buffers):
            flush(key)
        await asyncio.gather(*jobs)
        assert budget.in_use == 0
        assert budget.waiting == 0

    asyncio.run(asyncio.wait_for(run(), 30))
