"""Plain directories of Parquet or CSV files: a new one appears by a rename, an old one changes by a logged publish."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from daftwrite.errors import AlreadyExists, CommitStateUnknown, ConfigError, DataError, SchemaError, StoreError
from daftwrite.explanation import Explanation
from daftwrite.flags import check_flags
from daftwrite.formats.base import Format
from daftwrite.pipeline.align import plan_projection
from daftwrite.pipeline.resources import Resources
from daftwrite.pipeline.types import name_problems
from daftwrite.plan import WritePlan, new_write_id
from daftwrite.result import DataFile
from daftwrite.storage.base import Pending, Storage
from daftwrite.storage.local import LocalStorage, Staging, local_path, remove_file, sync_directory
from daftwrite.tables.base import Commit, Landed, WriteOptions, no_rows
from daftwrite.tables.explain import alignment, settings
from daftwrite.tables.hive import HiveNaming, data_files, partition_of
from daftwrite.tables.intents import Intent, Publication, Removal, complete_intents, intent_path, logged, remove_intent
from daftwrite.tables.sidecars import (
    METADATA_FILE,
    STALE_SIDECARS,
    SUCCESS_FILE,
    write_metadata_file,
    write_success_file,
)
from daftwrite.writers.split import partition_problems, source_type
from daftwrite.writers.transforms import PartitionField

__all__ = ["MODES", "DirectoryOptions", "DirectoryTable", "local_target", "plan_files"]

MODES = ("error", "append", "overwrite", "overwrite_partitions", "ignore")


def local_target(path: str | os.PathLike[str]) -> str:
    """The absolute path of a target.

    Raises:
        ConfigError: when it is empty or not local.
    """
    given: object = os.fspath(path) if isinstance(path, str | os.PathLike) else path
    if not isinstance(given, str):
        raise ConfigError(f"path must be text or a path, not {given!r}")
    local = local_path(given)
    if local is None:
        raise ConfigError(f"path {given!r} is not local; only local directories and files can be written yet")
    if not given:
        raise ConfigError("path is empty")
    if "\0" in given:
        raise ConfigError(f"path {given!r} has a NUL in it, which no file system takes")
    return os.path.abspath(os.path.expanduser(local))


@dataclass(frozen=True)
class DirectoryOptions:
    """One write's options; see `daftwrite.ParquetTarget` for their meaning."""

    mode: str = "error"
    partition_by: tuple[PartitionField, ...] = ()
    allow_empty: bool = False
    write_metadata_file: bool = False
    write_success_file: bool = False

    def __post_init__(self) -> None:
        check_flags(self, "allow_empty", "write_metadata_file", "write_success_file")
        if self.mode not in MODES:
            raise ConfigError(f"mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if self.mode == "overwrite_partitions" and not self.partition_by:
            raise ConfigError("mode='overwrite_partitions' needs partition_by")
        if self.allow_empty and self.mode != "overwrite":
            raise ConfigError(f"allow_empty needs mode='overwrite', not {self.mode!r}")


def plan_files(
    path: str, file_format: Format, fields: tuple[PartitionField, ...], schema: pa.Schema, options: WriteOptions
) -> WritePlan:
    """Plan a write of plain files; they become visible when all are finished.

    Raises:
        SchemaError: when names clash, or a type or partition field doesn't fit; all are listed.
    """
    if not len(schema):
        raise SchemaError("the source has no columns")
    problems = list(name_problems(schema.names))
    if problems:
        raise SchemaError("the source has columns that clash", problems)
    projection = plan_projection(schema, file_format.schema(schema), coerce_timestamps=options.coerce_timestamps)
    write_id = new_write_id()
    return WritePlan(
        target=path,
        write_id=write_id,
        projection=projection,
        partitioning=fields,
        body=_body(projection.target, fields),
        format=file_format,
        sizes=options.sizes(),
        naming=HiveNaming(path, file_format.extension, write_id),
        publish_on_close=False,
        write_empty_file=True,
    )


def _body(schema: pa.Schema, fields: tuple[PartitionField, ...]) -> tuple[str, ...]:
    problems = partition_problems(fields, schema)
    for field in fields:
        kind = source_type(schema, field.source)
        if kind is not None and pa.types.is_binary(kind) and field.transform.name in ("identity", "truncate"):
            problems.append(f"column '{field.source}': a path can't hold binary values")
    if problems:
        raise SchemaError("partition_by doesn't fit the source", problems)
    moved = {f.source for f in fields if f.transform.name == "identity" and f.source in schema.names}
    body = tuple(name for name in schema.names if name not in moved)
    if not body:
        raise SchemaError("every column is a partition column, nothing would be left in the files")
    for field in fields:
        if field.name in body:
            raise SchemaError(f"partition '{field.name}' has the name of a column that stays in the files")
    return body


class DirectoryTable:
    """One write to a directory.

    Args:
        path: the directory, local.
        file_format: the format of its files.
        options: what the write is asked to do.
    """

    def __init__(self, path: str | os.PathLike[str], file_format: Format, options: DirectoryOptions) -> None:
        self._path = local_target(path)
        self._format = file_format
        self._options = options

    @property
    def name(self) -> str:
        """See `Table.name`."""
        return self._path

    async def check(self, resources: Resources) -> bool:
        """Refuse a path that is taken, and finish what a killed write left; see `Table.check`."""
        return await resources.blocking(lambda: self._check(complete=True))

    def _check(self, *, complete: bool) -> bool:
        if not os.path.lexists(self._path):
            return True
        mode = self._options.mode
        if mode == "ignore":
            return False
        if mode == "error":
            raise AlreadyExists(
                f"{self._path} exists; pass mode='append' to add files to it, or mode='overwrite' to replace them"
            )
        if not os.path.isdir(self._path):
            raise AlreadyExists(f"{self._path} is a file, not a directory")
        if complete:
            complete_intents(self._path)
        stale = os.path.exists(os.path.join(self._path, METADATA_FILE))
        if stale and mode != "overwrite" and not self._options.write_metadata_file:
            raise ConfigError(
                f"{self._path} has a {METADATA_FILE} file, which would not know the new files; pass "
                "write_metadata_file=True to write it anew, or remove it"
            )
        return True

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Plan the write; see `Table.prepare`."""
        return await resources.blocking(lambda: self._prepare(schema, options))

    def _prepare(self, schema: pa.Schema, options: WriteOptions) -> WritePlan:
        write_id = new_write_id()
        new = not os.path.isdir(self._path)
        fields = self._options.partition_by
        return replace(
            plan_files(self._path, self._format, fields, schema, options),
            write_id=write_id,
            naming=HiveNaming(self._path, self._format.extension, write_id),
            publish_on_close=new,
            write_empty_file=(new or self._options.mode == "overwrite") and not fields,
            staging=Staging(self._path, _staged_path(self._path, write_id)) if new else None,
        )

    def storage(self, plan: WritePlan, resources: Resources) -> Storage:
        """See `Table.storage`."""
        return LocalStorage(resources.blocking, plan.staging)

    def refuse_empty(self) -> None:
        """See `Table.refuse_empty`."""
        if self._options.mode == "overwrite" and not self._options.allow_empty:
            raise DataError(
                f"the source has no rows, and mode='overwrite' would leave nothing in {self._path}; pass "
                "allow_empty=True to do so"
            )

    def kept_rows(self, plan: WritePlan, files: Sequence[DataFile], resources: Resources) -> AsyncIterator[pa.Table]:
        """None: files are replaced whole; see `Table.kept_rows`."""
        return no_rows()

    async def commit(self, commit: Commit) -> Landed:
        """Make the files visible; see `Table.commit`."""
        staging = commit.plan.staging
        pendings = commit.ledger.pending
        # From now on another write may publish them for us, should this process be killed.
        commit.ledger.expect_published(pendings)
        if staging is None:
            return await commit.resources.blocking(lambda: self._publish(commit, _publications(pendings, self._path)))
        return await commit.resources.blocking(lambda: self._reveal(commit, staging))

    def _reveal(self, commit: Commit, staging: Staging) -> Landed:
        try:
            os.makedirs(staging.staged, exist_ok=True)
            self._write_sidecars(staging)
            if os.path.isdir(staging.final) and self._options.mode == "append":
                return self._publish(commit, list(_staged_publications(staging)))
            _rename(staging)
        except OSError as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"can't rename {staging.staged} to {staging.final}: {error.strerror}") from error
        finally:
            shutil.rmtree(staging.staged, ignore_errors=True)
        return Landed(None)

    def _write_sidecars(self, staging: Staging) -> None:
        if self._options.write_metadata_file:
            found = [(path, os.path.relpath(path, staging.staged)) for path in self._data_files(staging.staged)]
            write_metadata_file(os.path.join(staging.staged, METADATA_FILE), found)
        if self._options.write_success_file:
            write_success_file(os.path.join(staging.staged, SUCCESS_FILE))

    def _publish(self, commit: Commit, files: list[Publication]) -> Landed:
        if not files and self._options.mode == "overwrite_partitions":
            return Landed(None)
        write_id = commit.plan.write_id
        remove = list(self._to_remove(commit.files))
        sidecars = list(self._sidecars(write_id, files, remove))
        intent = Intent(self._options.mode, files, remove, sidecars)
        path = intent_path(self._path, write_id)
        with logged(self._path, write_id, intent):
            try:
                intent.publish(self._path)
            except OSError as error:
                remove_intent(path)
                for publication in [*files, *sidecars]:
                    remove_file(os.path.join(self._path, publication.temporary))
                for publication in files:
                    remove_file(os.path.join(self._path, publication.file))
                raise StoreError(f"can't publish the files of {self._path}: {error.strerror or error}") from error
            try:
                intent.conclude(self._path)
            except OSError as error:
                raise CommitStateUnknown(
                    f"the new files of {self._path} are published, but not all old ones could be removed "
                    f"({error}); the next write to it goes on with that",
                    write_id=write_id,
                    files=commit.files,
                ) from error
            remove_intent(path)
        return Landed(None, tuple(os.path.join(self._path, removal.file) for removal in remove))

    def _data_files(self, root: str) -> Iterator[str]:
        return data_files(root, self._format.extensions)

    def _to_remove(self, written: Sequence[DataFile]) -> Iterator[Removal]:
        mode = self._options.mode
        if mode == "overwrite":
            for path in self._data_files(self._path):
                yield Removal.of(self._path, path)
            for name in STALE_SIDECARS:
                if os.path.isfile(os.path.join(self._path, name)):
                    yield Removal.of(self._path, os.path.join(self._path, name))
        elif mode == "overwrite_partitions":
            touched = {partition_of(file.path, self._path) for file in written}
            depth = len(self._options.partition_by)
            for path in self._data_files(self._path):
                if partition_of(path, self._path)[:depth] in touched:
                    yield Removal.of(self._path, path)

    def _sidecars(self, write_id: str, files: list[Publication], remove: list[Removal]) -> Iterator[Publication]:
        if self._options.write_metadata_file:
            gone = {removal.file for removal in remove}
            found = [(os.path.join(self._path, file.temporary), file.file) for file in files]
            for path in self._data_files(self._path):
                relative = os.path.relpath(path, self._path)
                if relative not in gone:
                    found.append((path, relative))
            temporary = f".{METADATA_FILE}.{write_id}.tmp"
            write_metadata_file(os.path.join(self._path, temporary), found)
            yield Publication(METADATA_FILE, temporary)
        if self._options.write_success_file:
            temporary = f".{SUCCESS_FILE}.{write_id}.tmp"
            write_success_file(os.path.join(self._path, temporary))
            yield Publication(SUCCESS_FILE, temporary)

    async def roll_back(self, resources: Resources) -> None:
        """Nothing to undo beyond the files; see `Table.roll_back`."""

    async def explain(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> Explanation:
        """See `Table.explain`."""
        return await resources.blocking(lambda: self._explain(schema, options))

    def _explain(self, schema: pa.Schema, options: WriteOptions) -> Explanation:
        proceed = self._check(complete=False)
        plan = self._prepare(schema, options)
        commit = list(self._commit_sentences(plan)) if proceed else ["the path exists: nothing is written"]
        return Explanation(
            target=plan.target,
            columns=alignment(plan.projection),
            partitioning=[str(field) for field in plan.partitioning],
            settings=settings(plan, options, {}),
            commit=commit,
        )

    def _commit_sentences(self, plan: WritePlan) -> Iterator[str]:
        if plan.staging is not None:
            yield "the directory appears whole, by one rename"
            return
        yield "new files become visible one after another, once all are finished"
        if self._options.mode == "overwrite":
            yield f"then {len(list(self._to_remove(()))):,} old files are removed"
        elif self._options.mode == "overwrite_partitions":
            yield "then the old files of every partition that the source has rows of are removed"


def _staged_path(path: str, write_id: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{write_id}.tmp")


def _rename(staging: Staging) -> None:
    parent = os.path.dirname(staging.final)
    if os.path.lexists(staging.final):
        raise AlreadyExists(f"{staging.final} appeared while it was being written")
    os.rename(staging.staged, staging.final)
    try:
        sync_directory(parent)
    except OSError:
        os.rename(staging.final, staging.staged)
        raise


def _publications(pendings: Sequence[Pending], root: str) -> list[Publication]:
    return [Publication(os.path.relpath(p.path, root), os.path.relpath(p.token, root)) for p in pendings]


def _staged_publications(staging: Staging) -> Iterator[Publication]:
    """The files of a directory that was written under another name, while the name was taken by another writer."""
    for folder, _, names in os.walk(staging.staged):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, staging.staged)
            if relative not in (METADATA_FILE, SUCCESS_FILE):
                yield Publication(relative, os.path.relpath(path, staging.final))
