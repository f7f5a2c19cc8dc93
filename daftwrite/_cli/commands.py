"""The commands `write` and `inspect`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

import daftwrite as dw
from daftwrite._cli.describe import describe, describe_result, print_description, print_result
from daftwrite._cli.iceberg_options import iceberg_arguments, iceberg_options, pairs, refuse_iceberg_options
from daftwrite._cli.progress import Progress
from daftwrite._cli.wording import in_options
from daftwrite.sizes import parse_size
from daftwrite.writers.transforms import parse_partition_field

__all__ = ["command"]

_ICEBERG = "iceberg:"
_CSV_ENDS = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".tsv.gz", ".tsv.zst", ".txt")
_PARQUET_ENDS = (".parquet", ".pq")


def _reporting(run: Callable[..., None]) -> Callable[..., None]:
    """Turn the library's errors into a message and exit status 1; an interrupt into 130, after its cleanup."""

    @wraps(run)
    def reporting(*args: Any, **kwargs: Any) -> None:
        try:
            run(*args, **kwargs)
        except dw.DaftwriteError as error:
            notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
            click.echo(f"daftwrite: {in_options(f'{error}{notes}', write.params, sys.argv[1:])}", err=True)
            sys.exit(1)
        except KeyboardInterrupt as interrupt:
            notes = "".join(f", {note}" for note in getattr(interrupt, "__notes__", ()))
            click.echo(f"daftwrite: interrupted{notes}", err=True)
            sys.exit(128 + signal.SIGINT)

    return reporting


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="daftwrite")
def command() -> None:
    """Stream Parquet and CSV files into Iceberg tables and directories."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _source_options(run: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--null-values", multiple=True, metavar="TEXT", help="Text that is a null in a CSV source."),
        click.option("--delimiter", metavar="CHAR", help="Delimiter of a CSV source. Default: detected."),
        click.option(
            "--schema-override",
            "schema_overrides",
            multiple=True,
            metavar="COLUMN=TYPE",
            help="SQL type of a column of a CSV source, such as amount=DOUBLE; repeatable. Default: detected.",
        ),
        click.option("--union-by-name", is_flag=True, help="Take the columns of all source files."),
    ):
        run = option(run)
    return run


@command.command()
@click.argument("source")
@click.argument("dest")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["parquet", "csv"]),
    help="Format of a directory or file. Default: what the name of a file tells, else parquet.",
)
@click.option(
    "--mode",
    help="error (default), append, overwrite, overwrite_partitions or ignore for a directory; append (default), "
    "overwrite or overwrite_partitions for an Iceberg table.",
)
@click.option(
    "--partition-by",
    multiple=True,
    metavar="FIELD",
    help='Such as carrier or "month(time_hour)"; repeatable.',
)
@click.option("--allow-empty", is_flag=True, help="Let an overwrite by a source without rows remove rows.")
@click.option("--target-file-size", metavar="SIZE", help='Such as "64 MiB". Default: 512 MiB.')
@click.option("--compression", metavar="CODEC", help="Default: zstd for Parquet, none for CSV.")
@click.option("--memory", metavar="SIZE", help='Such as "512 MiB". Default: 1 GiB.')
@click.option("--dry-run", is_flag=True, help="Tell what the write would do, without doing it.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@iceberg_options
@_source_options
@_reporting
def write(
    source: str,
    dest: str,
    format_: str | None,
    mode: str | None,
    partition_by: tuple[str, ...],
    allow_empty: bool,
    target_file_size: str | None,
    compression: str | None,
    memory: str | None,
    dry_run: bool,
    as_json: bool,
    null_values: tuple[str, ...],
    delimiter: str | None,
    schema_overrides: tuple[str, ...],
    union_by_name: bool,
    **iceberg: Any,
) -> None:
    """Write SOURCE, a Parquet or CSV file or glob, to DEST.

    DEST is an Iceberg identifier such as iceberg:namespace.table, a directory, or a file that ends in .parquet, .csv,
    .csv.gz or .csv.zst.
    """
    csv = {
        "null_values": list(null_values) or None,
        "delimiter": delimiter,
        "schema_overrides": pairs("--schema-override", schema_overrides) or None,
    }
    frame = _read(source, csv, union_by_name)
    target: dict[str, Any] = {
        "partition_by": [parse_partition_field(text) for text in partition_by],
        "allow_empty": allow_empty,
    }
    if mode is not None:
        target["mode"] = mode
    sizes: dict[str, Any] = {
        "target_file_size": _size(target_file_size, "--target-file-size"),
        "compression": compression,
    }
    kind: type[dw.IcebergTarget | dw.ParquetTarget | dw.CsvTarget]
    verb: Callable[..., dw.WriteResult]
    if dest.startswith(_ICEBERG):
        if format_ is not None:
            raise dw.ConfigError("--format is for directories, an Iceberg table has its own")
        target |= iceberg_arguments(iceberg)
        dest, kind, verb = dest.removeprefix(_ICEBERG), dw.IcebergTarget, frame.write_iceberg
    else:
        refuse_iceberg_options(iceberg)
        kind, verb = dw.ParquetTarget, frame.write_parquet
        if format_ == "csv" or (format_ is None and dest.lower().endswith(_CSV_ENDS)):
            kind, verb = dw.CsvTarget, frame.write_csv
    if dry_run:
        _print_plan(frame.explain_write(kind(dest, **target), **sizes), as_json)
        return
    with Progress(enabled=sys.stderr.isatty()) as progress:
        try:
            result = verb(dest, **target, **sizes, memory=_size(memory, "--memory"), on_event=progress.on_event)
        except KeyboardInterrupt as interrupt:
            interrupt.add_note("all was written" if progress.committed else "nothing was written")
            raise
    if as_json:
        click.echo(json.dumps(describe_result(result)))
    else:
        print_result(result)


def _print_plan(plan: dw.Explanation, as_json: bool) -> None:
    click.echo(json.dumps(plan.to_dict()) if as_json else str(plan))


def _size(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    return parse_size(int(text) if text.isdigit() else text, name)


def _read(source: str, csv: dict[str, Any], union_by_name: bool) -> dw.DataFrame:
    lowered = source.lower()
    if lowered.endswith(_PARQUET_ENDS):
        if any(csv.values()):
            raise dw.ConfigError("--null-values, --delimiter and --schema-override are for CSV sources")
        return dw.read_parquet(source, union_by_name=union_by_name)
    if lowered.endswith(_CSV_ENDS):
        return dw.read_csv(source, **csv, union_by_name=union_by_name)
    raise dw.ConfigError(
        f"can't tell the format of {source!r}: its name must end in .parquet, .csv, .csv.gz or .csv.zst"
    )


@command.command()
@click.argument("dest")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@_reporting
def inspect(dest: str, as_json: bool) -> None:
    """Show schema, partitions, files with sizes, and snapshots with their branches of DEST."""
    found = describe(dest)
    if as_json:
        click.echo(json.dumps(found))
    else:
        print_description(found)
