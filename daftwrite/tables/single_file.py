"""One file as the whole target: a path that ends in a file's name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from daftwrite.errors import AlreadyExists, ConfigError, DataError, StoreError
from daftwrite.explanation import Explanation
from daftwrite.formats.base import Format
from daftwrite.pipeline.resources import Resources
from daftwrite.plan import WritePlan
from daftwrite.result import DataFile
from daftwrite.storage.base import Storage
from daftwrite.storage.local import LocalStorage, publish_file, sync_directory
from daftwrite.tables.base import Commit, Landed, WriteOptions, no_rows
from daftwrite.tables.explain import alignment, settings
from daftwrite.tables.files import DirectoryOptions, local_target, plan_files
from daftwrite.writers.partition_key import PartitionKey

__all__ = ["SingleFileTable", "names_a_file"]

_MODES = ("error", "overwrite", "ignore")
_ENDLESS = 1 << 62
_CODEC_ENDINGS = {".gz": "gzip", ".zst": "zstd"}


def names_a_file(path: str | os.PathLike[str], extensions: tuple[str, ...]) -> bool:
    """Whether a path ends in a file's name, and no directory has it; a slash at its end makes it a directory."""
    target = local_target(path)
    text = os.fspath(path)
    return text.lower().endswith(extensions) and not os.path.isdir(target)


@dataclass(frozen=True)
class _OneName:
    path_: str

    def path(self, key: PartitionKey, sequence: int) -> str:
        """The one path."""
        return self.path_


class SingleFileTable:
    """One write to one file.

    Args:
        path: the file, local.
        file_format: its format.
        options: what the write is asked to do.
    """

    def __init__(self, path: str | os.PathLike[str], file_format: Format, options: DirectoryOptions) -> None:
        self._path = local_target(path)
        self._format = file_format
        self._options = options
        named = f"path {os.fspath(path)!r} names one file"
        if options.mode not in _MODES:
            raise ConfigError(f"{named}, so mode must be one of {', '.join(_MODES)}, not {options.mode!r}")
        if options.partition_by:
            raise ConfigError(f"{named}, which can't be partitioned; end it in '/' for a directory")
        for name in ("write_metadata_file", "write_success_file"):
            if getattr(options, name):
                raise ConfigError(f"{named}, and {name} is for directories")
        codec = getattr(file_format, "compression", "none")
        ending = os.path.splitext(self._path)[1].lower()
        if file_format.name == "csv" and _CODEC_ENDINGS.get(ending, "none") != codec:
            raise ConfigError(f"{named} that doesn't end as compression={codec!r} makes it; change one of them")

    @property
    def name(self) -> str:
        """See `Table.name`."""
        return self._path

    async def check(self, resources: Resources) -> bool:
        """Refuse a path that is taken; see `Table.check`."""
        return await resources.blocking(self._check)

    def _check(self) -> bool:
        if not os.path.lexists(self._path) or self._options.mode == "overwrite":
            return True
        if self._options.mode == "ignore":
            return False
        raise AlreadyExists(f"{self._path} exists; pass mode='overwrite' to replace it")

    async def prepare(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> WritePlan:
        """Plan the write; see `Table.prepare`."""
        return self._prepare(schema, options)

    def _prepare(self, schema: pa.Schema, options: WriteOptions) -> WritePlan:
        if options.target_file_size is not None:
            raise ConfigError(
                f"target_file_size can't be honoured: path {self._path!r} names one file; end it in '/' for a directory"
            )
        plan = plan_files(self._path, self._format, (), schema, options)
        sizes = replace(plan.sizes, target_file_size=_ENDLESS)
        return replace(plan, naming=_OneName(self._path), sizes=sizes)

    def storage(self, plan: WritePlan, resources: Resources) -> Storage:
        """See `Table.storage`."""
        return LocalStorage(resources.blocking, distinction=plan.write_id)

    def refuse_empty(self) -> None:
        """See `Table.refuse_empty`."""
        if self._options.mode == "overwrite" and not self._options.allow_empty:
            raise DataError(
                f"the source has no rows, and mode='overwrite' would leave none in {self._path}; pass allow_empty=True "
                "to do so"
            )

    def kept_rows(self, plan: WritePlan, files: Sequence[DataFile], resources: Resources) -> AsyncIterator[pa.Table]:
        """None; see `Table.kept_rows`."""
        return no_rows()

    async def commit(self, commit: Commit) -> Landed:
        """Give the file its name; see `Table.commit`."""
        (pending,) = commit.ledger.pending
        await commit.resources.blocking(lambda: self._name(pending.token))
        return Landed(None)

    def _name(self, temporary: str) -> None:
        try:
            if self._options.mode == "overwrite":
                os.replace(temporary, self._path)
                sync_directory(os.path.dirname(self._path))
            else:
                publish_file(temporary, self._path)
        except FileExistsError as error:
            raise AlreadyExists(f"{self._path} appeared while it was being written") from error
        except OSError as error:
            raise StoreError(f"can't publish {self._path}: {error.strerror or error}") from error

    async def roll_back(self, resources: Resources) -> None:
        """Nothing to undo beyond the file; see `Table.roll_back`."""

    async def explain(self, schema: pa.Schema, options: WriteOptions, resources: Resources) -> Explanation:
        """See `Table.explain`."""
        return await resources.blocking(lambda: self._explain(schema, options))

    def _explain(self, schema: pa.Schema, options: WriteOptions) -> Explanation:
        proceed = self._check()
        plan = self._prepare(schema, options)
        replaced = "the file takes the place of the old one" if os.path.lexists(self._path) else "the file appears"
        return Explanation(
            target=plan.target,
            columns=alignment(plan.projection),
            partitioning=(),
            settings=[setting for setting in settings(plan, options, {}) if setting.name != "target_file_size"],
            commit=[f"{replaced} whole" if proceed else "the path exists: nothing is written"],
        )
