"""1 % of lineitem overwritten by a filter that cuts through every file of an Iceberg table: daftwrite beside pyiceberg.

The filter is a range of ship dates, which lie all over the table's files. Every run is a fresh process with a fresh
table that daftwrite filled; what the table holds afterwards is checked with DuckDB.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from lineitem_to_iceberg import DATA, TARGET, make_source
from running import medians_of, run_writers, yardstick

WRITERS = ("daftwrite", "pyiceberg")
MEMORY = "256 MiB"
FILTER = "l_shipdate >= '1995-03-01' and l_shipdate < '1995-03-26'"


def main() -> None:
    run_writers(__file__, __doc__, WRITERS, run_one, prepare, print_table)


def prepare(scale: float) -> None:
    make_replacement(make_source(scale))


def make_replacement(source: Path) -> Path:
    """The rows that the filter matches, with another comment."""
    path = source.with_name("replacement.parquet")
    if not path.exists():
        import duckdb

        rows = f"select * replace ('replaced' as l_comment) from read_parquet('{source}') where {FILTER}"
        duckdb.sql(f"copy ({rows}) to '{path}' (format parquet)")
    return path


def run_one(writer: str, scale: float) -> None:
    import duckdb
    import pyarrow.parquet as pq
    from measure import measure
    from pyiceberg.catalog.sql import SqlCatalog

    import daftwrite as dw

    source = make_source(scale)
    replacement = make_replacement(source)
    folder = DATA / f"overwrite-{writer}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")
    properties = {"write.target-file-size-bytes": str(TARGET), "write.parquet.compression-level": "1"}

    def filled(name: str, path: Path) -> Any:
        table = catalog.create_table(f"bench.{name}", pq.read_schema(source), properties=properties)
        # A process of its own, so that filling leaves no memory behind.
        fill = (
            "import sys, daftwrite as dw; from pyiceberg.catalog.sql import SqlCatalog; "
            "c = SqlCatalog('bench', uri=sys.argv[1], warehouse=sys.argv[2]); "
            "dw.read_parquet(sys.argv[3]).write_iceberg(sys.argv[4], catalog=c)"
        )
        uri, warehouse = f"sqlite:///{folder}/catalog.db", f"file://{folder}"
        subprocess.run([sys.executable, "-c", fill, uri, warehouse, str(path), f"bench.{name}"], check=True)
        return table.refresh()

    def ours(table: Any) -> None:
        new = dw.read_parquet(str(replacement))
        new.write_iceberg(table, mode="overwrite", overwrite_filter=FILTER, memory=MEMORY)

    def theirs(table: Any) -> None:
        table.overwrite(pq.read_table(replacement), overwrite_filter=FILTER)

    write = ours if writer == "daftwrite" else theirs
    warm, real = filled("warm", source.with_name("warm-up.parquet")), filled("real", source)

    def describe(_: Any) -> dict[str, Any]:
        paths = [task.file.file_path.removeprefix("file://") for task in real.refresh().scan().plan_files()]
        count = f"select count(*), count(*) filter (where l_comment = 'replaced') from read_parquet({paths})"
        ((rows, replaced),) = duckdb.sql(count).fetchall()
        sizes = [Path(path).stat().st_size for path in paths]
        return {
            "rows": rows,
            "replaced": replaced,
            "files": len(paths),
            "largest": max(sizes),
            "snapshots": len(real.snapshots()) - 1,
        }

    measure(lambda: write(warm), lambda: write(real), describe)
    shutil.rmtree(folder, ignore_errors=True)


def print_table(reports: dict[str, list[dict[str, Any]]]) -> None:
    keys = ("wall", "cpu", "peak", "rows", "replaced", "files", "largest", "snapshots")
    medians = medians_of(reports, keys)
    ours = yardstick(medians)
    print(f"{int(ours['replaced']):,} of {int(ours['rows']):,} rows replaced, {os.cpu_count()} cores")
    print(
        "| writer | wall s | ratio | CPU s | ratio | peak MiB | ratio | files | largest file MiB | snapshots | rows |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for writer, found in medians.items():
        print(
            f"| {writer} | {found['wall']:.1f} | {found['wall'] / ours['wall']:.2f} | {found['cpu']:.1f} | "
            f"{found['cpu'] / ours['cpu']:.2f} | {found['peak'] / (1 << 20):.0f} | "
            f"{found['peak'] / ours['peak']:.2f} | {found['files']:.0f} | {found['largest'] / (1 << 20):.1f} | "
            f"{found['snapshots']:.0f} | {int(found['rows']):,} |"
        )


if __name__ == "__main__":
    main()
