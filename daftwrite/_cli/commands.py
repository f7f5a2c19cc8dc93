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
from daftwrite._cli.progress import Progress
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
            click.echo(f"daftwrite: {error}{notes}", err=True)
            sys.exit(1)
        except KeyboardInterrupt:
            click.echo("daftwrite: interrupted, nothing was written", err=True)
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
    help="Format of a directory. Default: parquet.",
)
@click.option("--mode", help="error (default) or append for a directory; append for an Iceberg table.")
@click.option(
    "--partition-by",
    multiple=True,
    metavar="FIELD",
    help='Such as carrier or "month(time_hour)"; repeatable.',
)
@click.option("--target-file-size", metavar="SIZE", help='Such as "64 MiB". Default: 512 MiB.')
@click.option("--compression", metavar="CODEC", help="Default: zstd for Parquet, none for CSV.")
@click.option("--memory", metavar="SIZE", help='Such as "512 MiB". Default: 1 GiB.')
@click.option("--create", is_flag=True, help="Make the Iceberg table, and its namespace, when missing.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@_source_options
@_reporting
def write(
    source: str,
    dest: str,
    format_: str | None,
    mode: str | None,
    partition_by: tuple[str, ...],
    target_file_size: str | None,
    compression: str | None,
    memory: str | None,
    create: bool,
    as_json: bool,
    null_values: tuple[str, ...],
    delimiter: str | None,
) -> None:
    """Write SOURCE, a Parquet or CSV file or glob, to DEST.

    DEST is an Iceberg identifier such as iceberg:namespace.table, or a directory.
    """
    frame = _read(source, null_values, delimiter)
    fields = [parse_partition_field(text) for text in partition_by]
    common: dict[str, Any] = {
        "partition_by": fields,
        "target_file_size": _size(target_file_size, "--target-file-size"),
        "compression": compression,
        "memory": _size(memory, "--memory"),
    }
    with Progress(enabled=sys.stderr.isatty()) as progress:
        common["on_event"] = progress.on_event
        if dest.startswith(_ICEBERG):
            if format_ is not None:
                raise dw.ConfigError("--format is for directories, an Iceberg table has its own")
            identifier = dest.removeprefix(_ICEBERG)
            result = frame.write_iceberg(identifier, mode=mode or "append", create=create, **common)
        else:
            if create:
                raise dw.ConfigError("--create is for Iceberg tables, a directory is made by itself")
            verb = frame.write_csv if format_ == "csv" else frame.write_parquet
            result = verb(dest, mode=mode or "error", **common)
    if as_json:
        click.echo(json.dumps(describe_result(result)))
    else:
        print_result(result)


def _size(text: str | None, name: str) -> int | None:
    if text is None:
        return None
    return parse_size(int(text) if text.isdigit() else text, name)


def _read(source: str, null_values: tuple[str, ...], delimiter: str | None) -> dw.DataFrame:
    lowered = source.lower()
    if lowered.endswith(_PARQUET_ENDS):
        if null_values or delimiter:
            raise dw.ConfigError("--null-values and --delimiter are for CSV sources")
        return dw.read_parquet(source)
    if lowered.endswith(_CSV_ENDS):
        return dw.read_csv(source, null_values=list(null_values) or None, delimiter=delimiter)
    raise dw.ConfigError(
        f"can't tell the format of {source!r}: its name must end in .parquet, .csv, .csv.gz or .csv.zst"
    )


@command.command()
@click.argument("dest")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@_reporting
def inspect(dest: str, as_json: bool) -> None:
    """Show schema, partitions, files with sizes, and snapshots of DEST."""
    found = describe(dest)
    if as_json:
        click.echo(json.dumps(found))
    else:
        print_description(found)
