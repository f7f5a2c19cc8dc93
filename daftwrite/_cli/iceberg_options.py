"""Options of `write` that only Iceberg tables have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import click

import daftwrite as dw
from daftwrite.writers.transforms import parse_partition_field

__all__ = ["iceberg_arguments", "iceberg_options", "pairs", "refuse_iceberg_options"]

_SORT = re.compile(r"(asc|desc)\((.+)\)")

_OPTIONS = (
    click.option("--create", is_flag=True, help="Make the Iceberg table, and its namespace, when missing."),
    click.option("--or-replace", is_flag=True, help="Make the Iceberg table, or replace the one that exists."),
    click.option("--overwrite-filter", metavar="SQL", help="Which rows --mode overwrite replaces. Default: all."),
    click.option("--schema-mode", metavar="MODE", help="merge adds new columns, overwrite replaces the schema."),
    click.option("--branch", metavar="NAME", help="The branch to write to. Default: main."),
    click.option("--stage-only", is_flag=True, help="Make a snapshot that no branch has."),
    click.option(
        "--snapshot-property", multiple=True, metavar="KEY=VALUE", help="For the snapshot's summary; repeatable."
    ),
    click.option("--property", multiple=True, metavar="KEY=VALUE", help="Of a table that is made; repeatable."),
    click.option(
        "--sort-by", multiple=True, metavar="FIELD", help='Of a table that is made, such as "desc(ts)"; repeatable.'
    ),
)


def iceberg_options(run: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options."""
    for option in _OPTIONS:
        run = option(run)
    return run


def iceberg_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `IcebergTarget` from what was given.

    Raises:
        ConfigError: naming the option that can't be read.
    """
    return {
        "create": "or_replace" if given["or_replace"] else given["create"],
        "overwrite_filter": given["overwrite_filter"],
        "schema_mode": given["schema_mode"],
        "branch": given["branch"],
        "stage_only": given["stage_only"],
        "snapshot_properties": pairs("--snapshot-property", given["snapshot_property"]),
        "properties": pairs("--property", given["property"]),
        "sort_by": [_sort_field(text) for text in given["sort_by"]],
    }


def refuse_iceberg_options(given: Mapping[str, Any]) -> None:
    """Refuse these options for a target that has no use for them.

    Raises:
        ConfigError: naming the option.
    """
    for name, value in given.items():
        if value:
            raise dw.ConfigError(f"--{name.replace('_', '-')} is for Iceberg tables, such as iceberg:namespace.table")


def pairs(option: str, texts: tuple[str, ...]) -> dict[str, str]:
    """A mapping from what was given as KEY=VALUE.

    Raises:
        ConfigError: naming the option and what is none.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise dw.ConfigError(f"{option} takes KEY=VALUE, not {text!r}")
        found[key] = value
    return found


def _sort_field(text: str) -> Any:
    match = _SORT.fullmatch(text.strip())
    if match is None:
        return dw.asc(parse_partition_field(text))
    make = dw.asc if match[1] == "asc" else dw.desc
    return make(parse_partition_field(match[2]))
