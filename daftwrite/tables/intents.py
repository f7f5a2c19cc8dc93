"""The log of a plain directory: what a write is about to do to it, so that a killed one can be completed."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from daftwrite.errors import StoreError
from daftwrite.storage.local import publish_file, remove_file, sync_directory

__all__ = [
    "INTENT_FOLDER",
    "Intent",
    "Publication",
    "Removal",
    "complete_intents",
    "intent_path",
    "logged",
    "remove_intent",
]

INTENT_FOLDER = "_daftwrite"
_CLAIMS = 100


@dataclass(frozen=True)
class Publication:
    """A finished file under its temporary name, and the name that it gets; both relative to the directory."""

    file: str
    temporary: str


@dataclass(frozen=True)
class Removal:
    """A file to remove, as it was when it was listed, so that a later file of the same name is left alone."""

    file: str
    nbytes: int
    modified: int

    @classmethod
    def of(cls, root: str, path: str) -> Removal:
        """The removal of a file as it is now."""
        found = os.stat(path, follow_symlinks=False)
        return cls(os.path.relpath(path, root), found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Intent:
    """All that a write does to a directory, in this order.

    Attributes:
        mode: the write's mode, for those who read the log.
        files: new files to make visible.
        remove: old files to take away once all new ones are visible.
        replace: sidecars that then take their names, whatever has them.
    """

    mode: str
    files: Sequence[Publication]
    remove: Sequence[Removal] = ()
    replace: Sequence[Publication] = field(default_factory=tuple)

    def publish(self, root: str) -> None:
        """Make the new files visible; may be done twice."""
        for publication in self.files:
            temporary = os.path.join(root, publication.temporary)
            if os.path.exists(temporary):
                _publish(temporary, os.path.join(root, publication.file))

    def conclude(self, root: str) -> None:
        """Take the old files away and put the sidecars in place; may be done twice."""
        for removal in self.remove:
            _remove(root, removal)
        for publication in self.replace:
            temporary = os.path.join(root, publication.temporary)
            if os.path.exists(temporary):
                os.replace(temporary, os.path.join(root, publication.file))
        if self.remove or self.replace:
            sync_directory(root)


def _publish(temporary: str, path: str) -> None:
    if os.path.exists(path) and os.path.getsize(path) == 0 < os.path.getsize(temporary):
        # The claim of a publish without hard links that was killed before its rename.
        os.replace(temporary, path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    publish_file(temporary, path)


def _remove(root: str, removal: Removal) -> None:
    path = os.path.join(root, removal.file)
    try:
        found = Removal.of(root, path)
    except FileNotFoundError:
        return
    if found != removal:
        return
    remove_file(path)
    folder = os.path.dirname(path)
    while folder != root:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


@contextlib.contextmanager
def logged(root: str, write_id: str, intent: Intent) -> Iterator[None]:
    """Keep an intent in the directory while it is carried out; it stays if that is cut short by `conclude`.

    The log is locked as long as the process lives, so that others complete it only after a kill.
    """
    descriptor = _write(intent_path(root, write_id), intent)
    try:
        yield
    finally:
        os.close(descriptor)


def _write(path: str, intent: Intent) -> int:
    folder = os.path.dirname(path)
    temporary = f"{path}.tmp"
    try:
        descriptor = _make_folder_and_claim(folder, temporary)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            text = json.dumps(asdict(intent)).encode()
            while text:
                text = text[os.write(descriptor, text) :]
            os.fsync(descriptor)
            os.replace(temporary, path)
            sync_directory(folder)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        remove_file(temporary)
        remove_intent(path)
        raise StoreError(f"can't write {path}: {error.strerror}") from error
    return descriptor


def _make_folder_and_claim(folder: str, temporary: str) -> int:
    # Another write that ends just now may remove the empty folder.
    for _ in range(_CLAIMS):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.makedirs(folder, exist_ok=True)
            return os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o666)
    raise FileNotFoundError(2, "the folder keeps disappearing", folder)


def remove_intent(path: str) -> None:
    """Forget an intent; one that stays is harmless, since completing it again changes nothing."""
    with contextlib.suppress(OSError):
        remove_file(path)
        os.rmdir(os.path.dirname(path))


def intent_path(root: str, write_id: str) -> str:
    """Where the intent of a write lies."""
    return os.path.join(root, INTENT_FOLDER, f"{write_id}.json")


def complete_intents(root: str) -> None:
    """Carry out the intents of writes that were killed after all their files were finished."""
    folder = Path(root, INTENT_FOLDER)
    if not folder.is_dir():
        return
    try:
        intents = sorted(folder.glob("*.json"))
    except FileNotFoundError:
        return
    for path in intents:
        try:
            with open(path, "rb") as file:
                if _owned(file.fileno(), path):
                    continue
                intent = _parse(json.load(file))
                intent.publish(root)
                intent.conclude(root)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"can't complete the interrupted write {path}: {error}") from error
        remove_intent(str(path))


def _owned(descriptor: int, path: Path) -> bool:
    """Whether the writer still lives, or has just ended by itself."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return not path.exists()


def _parse(logged: dict[str, Any]) -> Intent:
    return Intent(
        mode=logged["mode"],
        files=[Publication(**entry) for entry in logged["files"]],
        remove=[Removal(**entry) for entry in logged.get("remove", ())],
        replace=[Publication(**entry) for entry in logged.get("replace", ())],
    )
