"""Plain directories of Parquet or CSV files: a new one appears by a rename, an old one grows by a logged publish."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from daftwrite.errors import AlreadyExists, ConfigError, DataError, SchemaError, StoreError
from daftwrite.formats.base import Format
from daftwrite.pipeline.align import plan_projection
from daftwrite.pipeline.resources import Resources
from daftwrite.pipeline.types import name_problems
from daftwrite.plan import WritePlan, new_write_id
from daftwrite.storage.base import Pending
from daftwrite.storage.local import Staging, local_path, publish_file, remove_file, sync_directory
from daftwrite.tables.base import Commit, WriteOptions
from daftwrite.writers.partition_key import PartitionKey
from daftwrite.writers.split import partition_problems, source_type
from daftwrite.writers.transforms import PartitionField

__all__ = ["INTENT_FOLDER", "MODES", "DirectoryTable", "HiveNaming", "complete_intents"]

MODES = ("error", "append")
INTENT_FOLDER = "_daftwrite"
_CLAIMS = 100
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HIVE_SAFE = " ,+-_.~!$&()@;"


@dataclass(frozen=True)
class HiveNaming:
    """Names files in Hive's layout: `column=value` folders.

    Attributes:
        root: the directory.
        extension: the end of file names.
        write_id: stands in every name.
        task: the number of the writing task.
    """

    root: str
    extension: str
    write_id: str
    task: int = 0

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The path of a file."""
        for field, text in key.texts:
            if text in ("", _HIVE_NULL):
                raise DataError(f"partition '{field}': readers take {text!r} in a path for a null")
        folders = [f"{_escape(name)}={_HIVE_NULL if text is None else _escape(text)}" for name, text in key.texts]
        name = f"{self.task:05d}-{sequence:05d}-{self.write_id}.{self.extension}"
        return os.path.join(self.root, *folders, name)


def _escape(text: str) -> str:
    return quote(text, safe=_HIVE_SAFE)


class DirectoryTable:
    """One write to a directory.

    Args:
        path: the directory, local.
        file_format: the format of its files.
        mode: `"error"` refuses a path that exists, `"append"` adds files to it.
        partition_by: the partition fields; columns partitioned by their values don't stand in the files.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        file_format: Format,
        mode: str,
        partition_by: tuple[PartitionField, ...],
    ) -> None:
        given = os.fspath(path)
        local = local_path(given)
        if local is None:
            raise ConfigError(f"path {given!r} is not local; only local directories can be written yet")
        if not given:
            raise ConfigError("path is empty")
        if mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
        self._path = os.path.abspath(os.path.expanduser(local))
        self._format = file_format
        self._mode = mode
        self._partition_by = partition_by

    async def check(self, resources: Resources) -> None:
        """Refuse a path that is taken, and finish what a killed append left; see `Table.check`."""
        await resources.blocking(self._check)

    def _check(self) -> None:
        if not os.path.lexists(self._path):
            return
        if self._mode == "error":
            raise AlreadyExists(f"{self._path} exists; pass mode='append' to add files to it")
        if not os.path.isdir(self._path):
            raise AlreadyExists(f"{self._path} is a file, not a directory")
        complete_intents(self._path)

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Plan the write; see `Table.prepare`."""
        return await resources.blocking(lambda: self._prepare(schema, options))

    def _prepare(self, schema: pa.Schema, options: WriteOptions) -> WritePlan:
        if not len(schema):
            raise SchemaError("the source has no columns")
        problems = list(name_problems(schema.names))
        if problems:
            raise SchemaError("the source has columns that clash", problems)
        projection = plan_projection(schema, self._format.schema(schema), coerce_timestamps=options.coerce_timestamps)
        write_id = new_write_id()
        new = not os.path.isdir(self._path)
        return WritePlan(
            target=self._path,
            write_id=write_id,
            projection=projection,
            partitioning=self._partition_by,
            body=self._body(projection.target),
            format=self._format,
            sizes=options.sizes(),
            naming=HiveNaming(self._path, self._format.extension, write_id),
            publish_on_close=new,
            write_empty_file=new and not self._partition_by,
            staging=Staging(self._path, _staged_path(self._path, write_id)) if new else None,
        )

    def _body(self, schema: pa.Schema) -> tuple[str, ...]:
        problems = partition_problems(self._partition_by, schema)
        for field in self._partition_by:
            kind = source_type(schema, field.source)
            if kind is not None and pa.types.is_binary(kind) and field.transform.name in ("identity", "truncate"):
                problems.append(f"column '{field.source}': a path can't hold binary values")
        if problems:
            raise SchemaError("partition_by doesn't fit the source", problems)
        moved = {f.source for f in self._partition_by if f.transform.name == "identity" and f.source in schema.names}
        body = tuple(name for name in schema.names if name not in moved)
        if not body:
            raise SchemaError("every column is a partition column, nothing would be left in the files")
        for field in self._partition_by:
            if field.name in body:
                raise SchemaError(f"partition '{field.name}' has the name of a column that stays in the files")
        return body

    async def commit(self, commit: Commit) -> int | None:
        """Make the files visible; see `Table.commit`."""
        staging = commit.plan.staging
        if staging is not None:
            await commit.resources.blocking(lambda: _reveal(staging))
        elif commit.files:
            await self._publish_all(commit)
        return None

    async def _publish_all(self, commit: Commit) -> None:
        intent = _intent_path(self._path, commit.plan.write_id)
        pendings = commit.ledger.pending
        await commit.resources.blocking(lambda: _write_intent(intent, pendings))
        # From now on another append may publish them for us.
        commit.ledger.expect_published(pendings)
        try:
            for pending in pendings:
                await commit.ledger.publish(pending)
        finally:
            await commit.resources.blocking(lambda: _remove_intent(intent))

    async def roll_back(self, resources: Resources) -> None:
        """Nothing to undo beyond the files; see `Table.roll_back`."""


def _staged_path(path: str, write_id: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{write_id}.tmp")


def _reveal(staging: Staging) -> None:
    parent = os.path.dirname(staging.final)
    try:
        os.makedirs(staging.staged, exist_ok=True)
        if os.path.lexists(staging.final):
            raise AlreadyExists(f"{staging.final} appeared while it was being written")
        os.rename(staging.staged, staging.final)
        try:
            sync_directory(parent)
        except OSError:
            os.rename(staging.final, staging.staged)
            raise
    except AlreadyExists:
        shutil.rmtree(staging.staged, ignore_errors=True)
        raise
    except OSError as error:
        shutil.rmtree(staging.staged, ignore_errors=True)
        raise StoreError(f"can't rename {staging.staged} to {staging.final}: {error.strerror}") from error


def _intent_path(root: str, write_id: str) -> str:
    return os.path.join(root, INTENT_FOLDER, f"{write_id}.json")


def _write_intent(path: str, pendings: tuple[Pending, ...]) -> None:
    folder = os.path.dirname(path)
    root = os.path.dirname(folder)
    files = [{"file": os.path.relpath(p.path, root), "temporary": os.path.relpath(p.token, root)} for p in pendings]
    temporary = f"{path}.tmp"
    try:
        _make_folder_and_claim(folder, temporary)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"mode": "append", "files": files}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_directory(folder)
    except OSError as error:
        remove_file(temporary)
        raise StoreError(f"can't write {path}: {error.strerror}") from error


def _make_folder_and_claim(folder: str, temporary: str) -> None:
    # Another append that ends just now may remove the empty folder.
    for _ in range(_CLAIMS):
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            os.makedirs(folder, exist_ok=True)
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT, 0o666))
            return
    raise FileNotFoundError(2, "the folder keeps disappearing", folder)


def _remove_intent(path: str) -> None:
    # One that stays is harmless: completing it again changes nothing.
    with contextlib.suppress(OSError):
        remove_file(path)
        os.rmdir(os.path.dirname(path))


def complete_intents(root: str) -> None:
    """Publish the files of appends that were killed after all their files were finished.

    Doing it while the append still runs is harmless: each step may be done twice.
    """
    folder = Path(root, INTENT_FOLDER)
    if not folder.is_dir():
        return
    try:
        intents = sorted(folder.glob("*.json"))
    except FileNotFoundError:
        return
    for intent in intents:
        try:
            logged = json.loads(intent.read_text(encoding="utf-8"))
            for entry in logged["files"]:
                _publish_logged(os.path.join(root, entry["temporary"]), os.path.join(root, entry["file"]))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"can't complete the interrupted write {intent}: {error}") from error
        _remove_intent(str(intent))


def _publish_logged(temporary: str, path: str) -> None:
    if not os.path.exists(temporary):
        return
    if os.path.exists(path) and os.path.getsize(path) == 0 < os.path.getsize(temporary):
        # The claim of a publish without hard links that was killed before its rename.
        os.replace(temporary, path)
        return
    publish_file(temporary, path)
