"""What `inspect` and `write` tell about tables, directories and results."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import daftwrite as dw
from daftwrite.catalog.iceberg import resolve_identifier
from daftwrite.sizes import counted, format_size

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata

__all__ = ["describe", "describe_result", "print_description", "print_result"]

_SHOWN = 50


def describe_result(result: dw.WriteResult) -> dict[str, Any]:
    """A result as JSON-able values."""
    return {
        "target": result.target,
        "write_id": result.write_id,
        "snapshot_id": result.snapshot_id,
        "rows": result.rows,
        "bytes": result.nbytes,
        "seconds": dict(result.seconds),
        "skipped": result.skipped,
        "files": [_describe_file(file) for file in result.files],
        "kept_files": [_describe_file(file) for file in result.kept_files],
        "replaced": list(result.replaced),
    }


def _describe_file(file: dw.DataFile) -> dict[str, Any]:
    return {"path": file.path, "rows": file.rows, "bytes": file.nbytes, "partition": dict(file.partition)}


def print_result(result: dw.WriteResult) -> None:
    """Print a result for people."""
    if result.skipped:
        click.echo(f"{result.target}: exists, nothing was written")
        return
    snapshot = "" if result.snapshot_id is None else f"snapshot {result.snapshot_id}: "
    seconds = result.seconds.get("total", 0.0)
    click.echo(
        f"{result.target}: {snapshot}{counted(result.rows, 'row')} in {counted(len(result.files), 'file')}, "
        f"{format_size(result.nbytes)}, {seconds:.1f} s"
    )
    if result.replaced:
        kept = sum(file.rows for file in result.kept_files)
        stay = f"; {kept:,} of their rows stay, in {counted(len(result.kept_files), 'new file')}" if kept else ""
        click.echo(f"{'':>12} {counted(len(result.replaced), 'old file')} replaced{stay}")
    _print_files([{"path": f.path, "rows": f.rows, "bytes": f.nbytes} for f in result.files])


def _print_files(files: Sequence[Mapping[str, Any]]) -> None:
    for file in files[:_SHOWN]:
        rows = "" if file["rows"] is None else f"{counted(file['rows'], 'row'):>17}"
        click.echo(f"{format_size(file['bytes']):>12} {rows}  {file['path']}")
    if len(files) > _SHOWN:
        click.echo(f"{'':>12} and {len(files) - _SHOWN:,} more; --json lists all")


def describe(dest: str) -> dict[str, Any]:
    """Schema, partitions, files and snapshots of an Iceberg table, a directory or a file.

    Raises:
        TableNotFound: when there is none.
    """
    if dest.startswith("iceberg:"):
        return _describe_iceberg(dest.removeprefix("iceberg:"))
    return _describe_files(Path(dest))


def _describe_iceberg(identifier: str) -> dict[str, Any]:
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    catalog, name = resolve_identifier(identifier)
    try:
        table = catalog.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise dw.TableNotFound(f"table {'.'.join(name)} doesn't exist") from error
    schema = table.schema()
    files = [
        {"path": task.file.file_path, "rows": task.file.record_count, "bytes": task.file.file_size_in_bytes}
        for task in table.scan().plan_files()
    ]
    return {
        "target": ".".join(name),
        "format": f"iceberg v{table.metadata.format_version}",
        "location": table.location(),
        "schema": [f"{f.name}: {f.field_type}{' not null' if f.required else ''}" for f in schema.fields],
        "partitions": [f"{f.name}: {f.transform}({schema.find_column_name(f.source_id)})" for f in table.spec().fields],
        "files": sorted(files, key=lambda file: str(file["path"])),
        "snapshots": _describe_snapshots(table.metadata),
    }


def _describe_snapshots(metadata: TableMetadata) -> list[dict[str, Any]]:
    parents = {snapshot.snapshot_id: snapshot.parent_snapshot_id for snapshot in metadata.snapshots}
    reached: set[int | None] = set()
    for ref in metadata.refs.values():
        ancestor: int | None = ref.snapshot_id
        while ancestor is not None and ancestor not in reached:
            reached.add(ancestor)
            ancestor = parents.get(ancestor)
    return [
        {
            "id": snapshot.snapshot_id,
            "parent_id": snapshot.parent_snapshot_id,
            "timestamp_ms": snapshot.timestamp_ms,
            "refs": sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id == snapshot.snapshot_id),
            "reachable": snapshot.snapshot_id in reached,
            "operation": str(snapshot.summary.operation.value) if snapshot.summary else "",
            "summary": dict(snapshot.summary.additional_properties) if snapshot.summary else {},
        }
        for snapshot in metadata.snapshots
    ]


def _describe_files(root: Path) -> dict[str, Any]:
    paths = [root] if root.is_file() else list(_files_below(root))
    files = []
    for path in paths:
        rows = pq.read_metadata(path).num_rows if path.suffix == ".parquet" else None
        files.append({"path": str(path), "rows": rows, "bytes": path.stat().st_size})
    partitions = list(
        dict.fromkeys(part.partition("=")[0] for p in paths for part in p.relative_to(root).parts[:-1] if "=" in part)
    )
    return {
        "target": str(root),
        "format": paths[0].suffixes[0].removeprefix(".") if paths and paths[0].suffixes else "empty",
        "location": str(root.resolve()),
        "schema": _file_schema(paths[0]) if paths else [],
        "partitions": partitions,
        "files": files,
        "snapshots": [],
    }


def _files_below(root: Path) -> Iterator[Path]:
    if not root.is_dir():
        raise dw.TableNotFound(f"{root} is neither a directory nor a file")
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith((".", "_")))


def _file_schema(path: Path) -> list[str]:
    try:
        if path.suffix == ".parquet":
            return [f"{f.name}: {f.type}" for f in pq.read_schema(path)]
        opener = gzip.open if path.suffix == ".gz" else open
        if path.suffix == ".zst":
            with pa.input_stream(str(path), compression="zstd") as stream:
                return list(pyarrow.csv.open_csv(stream).schema.names)
        with opener(path, "rb") as file:
            return list(pyarrow.csv.open_csv(file).schema.names)
    except (OSError, pa.ArrowException) as error:
        raise dw.StoreError(f"can't read the schema of {path}: {error}") from error


def print_description(found: Mapping[str, Any]) -> None:
    """Print a description for people."""
    click.echo(f"{found['target']} ({found['format']}) at {found['location']}")
    click.echo("schema:")
    for line in found["schema"]:
        click.echo(f"  {line}")
    click.echo("partitions: " + (", ".join(found["partitions"]) or "none"))
    files = found["files"]
    rows = [f["rows"] for f in files if f["rows"] is not None]
    total = f", {sum(rows):,} rows" if rows else ""
    click.echo(f"files: {len(files):,}{total}, {format_size(sum(f['bytes'] for f in files))}")
    _print_files(files)
    if found["snapshots"]:
        click.echo("snapshots:")
    for snapshot in found["snapshots"]:
        added = snapshot["summary"].get("added-records", "0")
        refs = ", ".join(snapshot["refs"])
        where = f"  [{refs}]" if refs else "" if snapshot["reachable"] else "  (on no branch)"
        click.echo(f"  {snapshot['id']}  {snapshot['operation']}  {counted(int(added), 'row')} added{where}")
