from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daftwrite import AlreadyExists, StoreError
from daftwrite.storage.base import Pending
from daftwrite.storage.ledger import Ledger
from daftwrite.storage.local import LocalStorage, Staging, local_path

pytestmark = pytest.mark.anyio


async def run(work: Callable[[], None]) -> None:
    await asyncio.to_thread(work)


def buffers(*pieces: bytes) -> list[pa.Buffer]:
    return [pa.py_buffer(piece) for piece in pieces]


async def upload(storage: LocalStorage, path: Path, *pieces: bytes) -> Pending:
    made = await storage.create(str(path))
    for piece in pieces:
        await made.append(buffers(piece))
    return await made.finish()


async def test_nothing_is_visible_before_publish(tmp_path: Path) -> None:
    storage = LocalStorage(run)
    pending = await upload(storage, tmp_path / "a" / "f", b"one", b"", b"two")
    assert os.listdir(tmp_path / "a") == [".f.tmp"]
    assert pending.nbytes == 6
    stored = await storage.publish(pending)
    assert os.listdir(tmp_path / "a") == ["f"]
    assert (tmp_path / "a" / "f").read_bytes() == b"onetwo"
    assert stored.nbytes == 6


async def test_publish_never_replaces_a_foreign_file(tmp_path: Path) -> None:
    storage = LocalStorage(run)
    pending = await upload(storage, tmp_path / "f", b"ours")
    (tmp_path / "f").write_bytes(b"theirs")
    with pytest.raises(AlreadyExists):
        await storage.publish(pending)
    assert (tmp_path / "f").read_bytes() == b"theirs"
    await storage.discard(pending)
    assert os.listdir(tmp_path) == ["f"]


async def test_publish_may_be_done_twice(tmp_path: Path) -> None:
    storage = LocalStorage(run)
    pending = await upload(storage, tmp_path / "f", b"x")
    os.link(tmp_path / ".f.tmp", tmp_path / "f")
    await storage.publish(pending)
    await storage.publish(pending)
    assert os.listdir(tmp_path) == ["f"]


async def test_without_hard_links_a_claim_keeps_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    storage = LocalStorage(run)
    pending = await upload(storage, tmp_path / "f", b"ours")
    await storage.publish(pending)
    assert (tmp_path / "f").read_bytes() == b"ours"
    second = await upload(storage, tmp_path / "f", b"again")
    with pytest.raises(AlreadyExists):
        await storage.publish(second)
    assert (tmp_path / "f").read_bytes() == b"ours"


async def test_abort_and_delete_twice(tmp_path: Path) -> None:
    storage = LocalStorage(run)
    made = await storage.create(str(tmp_path / "d" / "f"))
    await made.append(buffers(b"x"))
    await made.abort()
    await made.abort()
    await storage.delete(str(tmp_path / "d" / "f"))
    assert os.listdir(tmp_path / "d") == []
    await storage.remove_made_directories()
    assert os.listdir(tmp_path) == []


async def test_a_name_is_never_used_twice(tmp_path: Path) -> None:
    storage = LocalStorage(run)
    await storage.create(str(tmp_path / "f"))
    with pytest.raises(AlreadyExists, match="can't create"):
        await storage.create(str(tmp_path / "f"))


async def test_errors_name_the_file_and_keep_their_cause() -> None:
    with pytest.raises(StoreError, match=r"can't create /dev/null/x") as caught:
        await LocalStorage(run).create("/dev/null/x")
    assert isinstance(caught.value.__cause__, OSError)


async def test_a_staged_directory(tmp_path: Path) -> None:
    storage = LocalStorage(run, Staging(str(tmp_path / "out"), str(tmp_path / ".out.tmp")))
    await storage.publish(await upload(storage, tmp_path / "out" / "k=1" / "f", b"x"))
    assert os.listdir(tmp_path) == [".out.tmp"]
    assert (tmp_path / ".out.tmp" / "k=1" / "f").read_bytes() == b"x"
    await storage.delete(str(tmp_path / "out" / "k=1" / "f"))
    await storage.remove_made_directories()
    assert os.listdir(tmp_path) == []


async def test_the_ledger_undoes_what_is_open_pending_and_published(tmp_path: Path) -> None:
    ledger = Ledger(LocalStorage(run))
    for name in ("open", "pending", "published"):
        made = await ledger.create(str(tmp_path / name))
        await made.append(buffers(b"x"))
        if name != "open":
            pending = await ledger.finish(str(tmp_path / name))
            if name == "published":
                await ledger.publish(pending)
    assert sorted(os.listdir(tmp_path)) == [".open.tmp", ".pending.tmp", "published"]
    assert [p.path for p in ledger.pending] == [str(tmp_path / "pending")]
    assert await ledger.undo() == []
    assert os.listdir(tmp_path) == []
    assert await ledger.undo() == []


async def test_the_ledger_leaves_a_foreign_file_that_was_in_the_way(tmp_path: Path) -> None:
    ledger = Ledger(LocalStorage(run))
    await ledger.create(str(tmp_path / "f"))
    pending = await ledger.finish(str(tmp_path / "f"))
    (tmp_path / "f").write_bytes(b"theirs")
    with pytest.raises(AlreadyExists):
        await ledger.publish(pending)
    await ledger.undo()
    assert (tmp_path / "f").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["f"]


async def test_the_ledger_tells_what_it_could_not_undo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(LocalStorage(run))
    await ledger.create(str(tmp_path / "a"))
    await ledger.create(str(tmp_path / "b"))
    real = os.unlink

    def unlink(path: str) -> None:
        if path.endswith(".a.tmp"):
            raise PermissionError(13, "Permission denied")
        real(path)

    monkeypatch.setattr(os, "unlink", unlink)
    ((path, error),) = await ledger.undo()
    assert path == str(tmp_path / "a")
    assert isinstance(error, StoreError)
    assert os.listdir(tmp_path) == [".a.tmp"]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/x/y", "/x/y"),
        ("file:/x/y", "/x/y"),
        ("file:///x/y", "/x/y"),
        ("file://localhost/x", "/x"),
        ("FILE:///x", "/x"),
        ("file:///x%20y", "/x%20y"),
        ("file://host/x", None),
        ("s3://b/x", None),
        ("s3a://b/x", None),
        ("memory://x", None),
        ("c=1:2/x", "c=1:2/x"),
    ],
)
def test_locations(location: str, path: str | None) -> None:
    assert local_path(location) == path


@given(st.text(st.characters(exclude_characters=":", exclude_categories=["Cs"]), max_size=30))
def test_paths_without_a_scheme_are_local(path: str) -> None:
    assert local_path("/" + path) == "/" + path
