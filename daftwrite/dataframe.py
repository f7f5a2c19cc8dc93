"""The DataFrame: data that is read when it is written, and the verbs that write it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import pyarrow as pa

from daftwrite.blocking import run_blocking
from daftwrite.engine.query import SMALLEST_ENGINE, Query
from daftwrite.errors import ConfigError
from daftwrite.explanation import Explanation
from daftwrite.pipeline.events import EventHook
from daftwrite.pipeline.resources import Resources
from daftwrite.pipeline.source import Source, open_source
from daftwrite.result import WriteResult
from daftwrite.sizes import Size
from daftwrite.sorting import SortBy
from daftwrite.tables.base import PartitionBy, WriteOptions
from daftwrite.targets import CsvTarget, IcebergTarget, ParquetTarget, Target, as_target
from daftwrite.writing import Writer, WriterContext, as_resources

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as PyIcebergTable

__all__ = ["DataFrame"]

logger = logging.getLogger("daftwrite")


class DataFrame:
    """Data from files or Arrow, made by `read_csv`, `read_parquet` and `from_arrow`.

    Nothing is read before a verb asks for it. Every verb that writes has a twin for asynchronous code with `_async`
    behind its name and the same arguments.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        self._used_up = False

    def _refuse_used_up(self) -> None:
        once = any(hasattr(self._data, name) for name in ("__next__", "__anext__", "read_next_batch"))
        if once and self._used_up:
            raise ConfigError(
                f"this frame's {type(self._data).__name__} was written already, and can be read only once"
            )
        self._used_up = True

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema.

        Raises:
            QueryError: when the files can't be read.
            ConfigError: when the data is an iterator, whose schema is known only with its first batch.
        """
        if isinstance(self._data, Query):
            return self._data.bind()
        schema = open_source(self._data).schema if not hasattr(self._data, "__next__") else None
        if schema is None:
            raise ConfigError("the schema of an iterator is known only with its first batch")
        return schema

    def write_iceberg(
        self,
        table: PyIcebergTable | str,
        *,
        mode: str = "append",
        overwrite_filter: Any = None,
        allow_empty: bool = False,
        schema_mode: str | None = None,
        branch: str | None = None,
        stage_only: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
        catalog: Catalog | None = None,
        create: bool | str = False,
        partition_by: PartitionBy = None,
        sort_by: SortBy = None,
        properties: Mapping[str, str] | None = None,
        identifier_fields: Sequence[str] = (),
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        coerce_timestamps: str | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        """Write to an Iceberg table in one snapshot.

        Columns are matched by name. Missing optional columns become nulls; types are widened only where no value can
        change; everything else is refused before anything is written, all differences at once.

        Args:
            table: a pyiceberg `Table`, or an identifier such as `"namespace.table"` or `"catalog.namespace.table"`.
            mode: `"append"`; `"overwrite"` replaces all rows, or those that `overwrite_filter` matches;
                `"overwrite_partitions"` replaces every partition that the frame has rows of.
            overwrite_filter: which rows `mode="overwrite"` replaces: text such as `"day = '2026-01-01'"`, a `dw.col`
                expression, or a pyiceberg expression. Files that hold other rows too are rewritten. Default: all rows.
            allow_empty: let an overwrite by a frame without rows remove rows without writing any.
            schema_mode: `"merge"` adds new columns to the table and promotes types; `"overwrite"`, with a
                `mode="overwrite"` of all rows, gives the table this frame's schema. Both in the data's commit.
            branch: the branch to write to; a new one starts from main. Default: main.
            stage_only: make a snapshot that no branch has, to be audited and published later.
            snapshot_properties: text to text, for the snapshot's summary.
            catalog: the pyiceberg catalog in which to look an identifier up. Default: the configured catalog, or
                without any configuration the embedded one in `./warehouse`.
            create: `True` makes the namespace and the table, from this frame's schema, when they are missing;
                `"or_replace"` also replaces a table that exists, whose history stays.
            partition_by: how to partition a table that is made: columns and transforms such as `dw.month("ts")`.
            sort_by: the sort order of a table that is made: columns, `dw.asc(...)`, `dw.desc(...)`.
            properties: the properties of a table that is made.
            identifier_fields: columns that identify a row of a table that is made.
            target_file_size: bytes on disk at which a file ends, such as `"64 MiB"`. Default: the table property
                `write.target-file-size-bytes`, else 512 MiB.
            row_group_size: the most encoded bytes of a row group. Default: the table property
                `write.parquet.row-group-size-bytes`, else 128 MiB.
            row_group_rows: the most rows of a row group. Default: the table property
                `write.parquet.row-group-limit`, else 1,048,576.
            compression: the codec. Default: the table property `write.parquet.compression-codec`, else zstd.
            compression_level: the codec's level.
            coerce_timestamps: `"us"`: nanosecond times are stored as microseconds; one that isn't exact is an error.
            memory: bytes that the write may use, or `Resources` that several writes share. Default 1 GiB.
            on_event: called with each event of `daftwrite.pipeline.events`.

        Returns:
            The snapshot, files, rows, bytes and seconds. A frame without rows makes no snapshot.

        Raises:
            TableNotFound: when the table is missing, and `create` is not set.
            ConfigError: when an option or a table property can't be honoured.
            SchemaError: when the frame doesn't fit the table.
            DataError: when a value doesn't fit its column, or an overwrite has no rows.
            CommitConflict: when the catalog refuses, or what others committed meanwhile contradicts an overwrite;
                nothing is left behind.
            CommitStateUnknown: when nobody can tell whether the commit landed; the files are kept.
        """
        return run_blocking(
            lambda: self.write_iceberg_async(
                table,
                mode=mode,
                overwrite_filter=overwrite_filter,
                allow_empty=allow_empty,
                schema_mode=schema_mode,
                branch=branch,
                stage_only=stage_only,
                snapshot_properties=snapshot_properties,
                catalog=catalog,
                create=create,
                partition_by=partition_by,
                sort_by=sort_by,
                properties=properties,
                identifier_fields=identifier_fields,
                target_file_size=target_file_size,
                row_group_size=row_group_size,
                row_group_rows=row_group_rows,
                compression=compression,
                compression_level=compression_level,
                coerce_timestamps=coerce_timestamps,
                memory=memory,
                on_event=on_event,
            )
        )

    async def write_iceberg_async(
        self,
        table: PyIcebergTable | str,
        *,
        mode: str = "append",
        overwrite_filter: Any = None,
        allow_empty: bool = False,
        schema_mode: str | None = None,
        branch: str | None = None,
        stage_only: bool = False,
        snapshot_properties: Mapping[str, str] | None = None,
        catalog: Catalog | None = None,
        create: bool | str = False,
        partition_by: PartitionBy = None,
        sort_by: SortBy = None,
        properties: Mapping[str, str] | None = None,
        identifier_fields: Sequence[str] = (),
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        coerce_timestamps: str | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        """Write to an Iceberg table in one snapshot; see `write_iceberg`."""
        options = WriteOptions(
            target_file_size,
            row_group_size,
            row_group_rows,
            compression,
            compression_level,
            coerce_timestamps,
        )
        target = IcebergTarget(
            table,
            mode=mode,
            overwrite_filter=overwrite_filter,
            allow_empty=allow_empty,
            schema_mode=schema_mode,
            branch=branch,
            stage_only=stage_only,
            snapshot_properties=snapshot_properties or {},
            catalog=catalog,
            create=create,
            partition_by=partition_by,
            sort_by=sort_by,
            properties=properties or {},
            identifier_fields=identifier_fields,
        )
        return await self._write(target, options, memory, on_event)

    def write_parquet(
        self,
        path: str | os.PathLike[str],
        *,
        mode: str = "error",
        partition_by: PartitionBy = None,
        allow_empty: bool = False,
        write_metadata_file: bool = False,
        write_success_file: bool = False,
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        """Write a directory of Parquet files, or one file where `path` ends in a Parquet file's name.

        A new directory appears whole, by one rename. Files added to an old one become visible one after another once
        all of them are finished; a reader that comes between sees some of them, each whole.

        Args:
            path: the directory or file, local; a `/` at its end makes any name a directory.
            mode: `"error"` refuses a path that exists, `"append"` adds files to it, `"overwrite"` replaces its Parquet
                files once all new ones are there, `"overwrite_partitions"` replaces those of every partition that the
                frame has rows of, `"ignore"` writes nothing where the path exists.
            partition_by: columns and transforms that make Hive folders such as `carrier=UA`; columns that are
                partitioned by their values don't stand in the files.
            allow_empty: let `mode="overwrite"` by a frame without rows leave none.
            write_metadata_file: write a `_metadata` file with the footers of all files.
            write_success_file: write an empty `_SUCCESS` file when all else is done.
            target_file_size: bytes on disk at which a file ends, such as `"64 MiB"`. Default 512 MiB.
            row_group_size: the most encoded bytes of a row group. Default 128 MiB.
            row_group_rows: the most rows of a row group. Default 1,048,576.
            compression: `"zstd"` (default), `"snappy"`, `"gzip"`, `"brotli"`, `"lz4"` or `"none"`.
            compression_level: the codec's level.
            memory: bytes that the write may use, or `Resources` that several writes share. Default 1 GiB.
            on_event: called with each event of `daftwrite.pipeline.events`.

        Returns:
            The files, rows, bytes and seconds. A frame without rows makes one file without rows in a new directory that
            isn't partitioned.

        Raises:
            AlreadyExists: when the path exists and `mode` is `"error"`.
            SchemaError: when names clash, or a type has no place in Parquet.
            DataError: when an overwrite has no rows.
        """
        return run_blocking(
            lambda: self.write_parquet_async(
                path,
                mode=mode,
                partition_by=partition_by,
                allow_empty=allow_empty,
                write_metadata_file=write_metadata_file,
                write_success_file=write_success_file,
                target_file_size=target_file_size,
                row_group_size=row_group_size,
                row_group_rows=row_group_rows,
                compression=compression,
                compression_level=compression_level,
                memory=memory,
                on_event=on_event,
            )
        )

    async def write_parquet_async(
        self,
        path: str | os.PathLike[str],
        *,
        mode: str = "error",
        partition_by: PartitionBy = None,
        allow_empty: bool = False,
        write_metadata_file: bool = False,
        write_success_file: bool = False,
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        """Write a directory of Parquet files; see `write_parquet`."""
        options = WriteOptions(target_file_size, row_group_size, row_group_rows, compression, compression_level)
        target = ParquetTarget(path, mode, partition_by, allow_empty, write_metadata_file, write_success_file)
        return await self._write(target, options, memory, on_event)

    def write_csv(
        self,
        path: str | os.PathLike[str],
        *,
        mode: str = "error",
        partition_by: PartitionBy = None,
        allow_empty: bool = False,
        write_success_file: bool = False,
        delimiter: str = ",",
        include_header: bool = True,
        quoting_style: str = "needed",
        null_text: str = "",
        quote_char: str = '"',
        escape_char: str | None = None,
        force_quote: Sequence[str] = (),
        date_format: str | None = None,
        timestamp_format: str | None = None,
        line_terminator: str = "\n",
        include_bom: bool = False,
        compression: str | None = None,
        target_file_size: Size | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        r"""Write a directory of CSV files, or one file where `path` ends in a CSV file's name.

        Args:
            path: the directory or file, local; a `/` at its end makes any name a directory.
            mode: `"error"`, `"append"`, `"overwrite"`, `"overwrite_partitions"` or `"ignore"`; see `write_parquet`.
            partition_by: columns and transforms that make Hive folders; see `write_parquet`.
            allow_empty: let `mode="overwrite"` by a frame without rows leave none.
            write_success_file: write an empty `_SUCCESS` file when all else is done.
            delimiter: one character between values.
            include_header: whether each file begins with the column names.
            quoting_style: `"needed"` quotes what would be read wrongly without, `"all_valid"` all values but nulls,
                `"none"` nothing, refusing values that need it.
            null_text: what stands for a null. Text that equals it is quoted.
            quote_char: one character around values.
            escape_char: one character before a quote inside a value; by default the quote is doubled.
            force_quote: columns whose values are quoted always, nulls excepted.
            date_format: a pattern for dates, such as `"%d.%m.%Y"`. Default: ISO 8601.
            timestamp_format: a pattern for timestamps; `%S` is whole seconds, `%f` microseconds. Default: ISO 8601.
            line_terminator: `"\n"` or `"\r\n"`.
            include_bom: whether each file begins with UTF-8's byte order mark.
            compression: `"none"`, `"gzip"` or `"zstd"`. Default: what the name of a single file tells, else none.
            target_file_size: bytes on disk at which a file ends. Default 512 MiB.
            memory: bytes that the write may use, or `Resources` that several writes share. Default 1 GiB.
            on_event: called with each event of `daftwrite.pipeline.events`.

        Returns:
            The files, rows, bytes and seconds.

        Raises:
            AlreadyExists: when the path exists and `mode` is `"error"`.
            SchemaError: when names clash, or a column is nested or has no text.
        """
        return run_blocking(
            lambda: self.write_csv_async(
                path,
                mode=mode,
                partition_by=partition_by,
                allow_empty=allow_empty,
                write_success_file=write_success_file,
                delimiter=delimiter,
                include_header=include_header,
                quoting_style=quoting_style,
                null_text=null_text,
                quote_char=quote_char,
                escape_char=escape_char,
                force_quote=force_quote,
                date_format=date_format,
                timestamp_format=timestamp_format,
                line_terminator=line_terminator,
                include_bom=include_bom,
                compression=compression,
                target_file_size=target_file_size,
                memory=memory,
                on_event=on_event,
            )
        )

    async def write_csv_async(
        self,
        path: str | os.PathLike[str],
        *,
        mode: str = "error",
        partition_by: PartitionBy = None,
        allow_empty: bool = False,
        write_success_file: bool = False,
        delimiter: str = ",",
        include_header: bool = True,
        quoting_style: str = "needed",
        null_text: str = "",
        quote_char: str = '"',
        escape_char: str | None = None,
        force_quote: Sequence[str] = (),
        date_format: str | None = None,
        timestamp_format: str | None = None,
        line_terminator: str = "\n",
        include_bom: bool = False,
        compression: str | None = None,
        target_file_size: Size | None = None,
        memory: Size | Resources | None = None,
        on_event: EventHook | None = None,
    ) -> WriteResult:
        """Write a directory of CSV files; see `write_csv`."""
        options = WriteOptions(target_file_size, compression=compression)
        target = CsvTarget(
            path,
            mode=mode,
            partition_by=partition_by,
            allow_empty=allow_empty,
            write_success_file=write_success_file,
            delimiter=delimiter,
            include_header=include_header,
            quoting_style=quoting_style,
            null_text=null_text,
            quote_char=quote_char,
            escape_char=escape_char,
            force_quote=force_quote,
            date_format=date_format,
            timestamp_format=timestamp_format,
            line_terminator=line_terminator,
            include_bom=include_bom,
        )
        return await self._write(target, options, memory, on_event)

    def explain_write(
        self,
        target: Target | PyIcebergTable | str,
        *,
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        coerce_timestamps: str | None = None,
    ) -> Explanation:
        """Tell what a write would do: alignment, partitioning, sizes, properties and commit. Nothing is written.

        Args:
            target: an `IcebergTarget`, `ParquetTarget` or `CsvTarget`, a pyiceberg `Table` or its identifier.
            target_file_size: as for the verb that writes.
            row_group_size: as for the verb that writes.
            row_group_rows: as for the verb that writes.
            compression: as for the verb that writes.
            compression_level: as for the verb that writes.
            coerce_timestamps: as for the verb that writes.

        Returns:
            What would happen; `print` shows it.

        Raises:
            DaftwriteError: as the verb that writes would before its first byte.

        Example:
            ```python
            print(df.explain_write(dw.IcebergTarget("demo.events", mode="overwrite", overwrite_filter="id < 10")))
            ```
        """
        return run_blocking(
            lambda: self.explain_write_async(
                target,
                target_file_size=target_file_size,
                row_group_size=row_group_size,
                row_group_rows=row_group_rows,
                compression=compression,
                compression_level=compression_level,
                coerce_timestamps=coerce_timestamps,
            )
        )

    async def explain_write_async(
        self,
        target: Target | PyIcebergTable | str,
        *,
        target_file_size: Size | None = None,
        row_group_size: Size | None = None,
        row_group_rows: int | None = None,
        compression: str | None = None,
        compression_level: int | None = None,
        coerce_timestamps: str | None = None,
    ) -> Explanation:
        """Tell what a write would do; see `explain_write`."""
        options = WriteOptions(
            target_file_size, row_group_size, row_group_rows, compression, compression_level, coerce_timestamps
        )
        table = as_target(target).open(options)
        resources = as_resources(None, engine_share=0)
        schema = await resources.blocking(lambda: self.schema)
        return await table.explain(schema, options, resources)

    async def _write(
        self,
        target: Target,
        options: WriteOptions,
        memory: Size | Resources | None,
        on_event: EventHook | None,
    ) -> WriteResult:
        if not isinstance(self._data, Query):
            self._refuse_used_up()
            resources = memory if isinstance(memory, Resources) else as_resources(memory, engine_share=0)
            return await _write_source(open_source(self._data), target, options, resources, on_event)
        resources = as_resources(memory)
        engine = resources.engine
        # Several queries of shared resources run side by side.
        share = max(engine.limit // 4, min(engine.limit, SMALLEST_ENGINE)) if resources is memory else engine.limit
        reservation = await engine.reserve(share)
        try:
            return await _write_source(self._data.stream(share), target, options, resources, on_event)
        finally:
            reservation.release()


async def _write_source(
    source: Source, target: Target, options: WriteOptions, resources: Resources, on_event: EventHook | None
) -> WriteResult:
    context = WriterContext(target, options, resources, on_event)
    try:
        async with context as writer:
            await _pump(source, writer)
    finally:
        with anyio.CancelScope(shield=True):
            await _close(source)
    return writer.result


async def _close(source: Source) -> None:
    # A landed write must not look like a failed one because its source could not end.
    try:
        await source.close()
    except Exception:
        logger.exception("the source %r could not be closed", source)


async def _pump(source: Source, writer: Writer) -> None:
    write = writer._write
    if write.skipped:
        return
    if source.schema is not None:
        await write.plan(source.schema)
    while True:
        begun = time.perf_counter()
        batch = None
        with anyio.CancelScope() as pulling:
            write.interruptible(pulling.cancel)
            write.check()
            batch = await source.next()
        write.interruptible(lambda: None)
        write.read_seconds += time.perf_counter() - begun
        write.check()
        if batch is None:
            return
        await writer.write(batch)
