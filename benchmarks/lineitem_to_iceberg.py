"""TPC-H lineitem from one Parquet file into an Iceberg table: daftwrite beside pyiceberg, Polars and Daft.

Every run is a fresh process; the writers alternate, and medians are reported. Memory is the peak of resident memory
over what the process had after imports, opening source and target, and a small write of the same kind.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from running import medians_of, run_writers, yardstick

HERE = Path(__file__).parent
DATA = HERE / "data"
WRITERS = ("daftwrite", "pyiceberg", "polars", "daft")
TARGET = 64 << 20
MEMORY = "512 MiB"


def main() -> None:
    run_writers(__file__, __doc__, WRITERS, run_one, make_source, print_table)


def make_source(scale: float) -> Path:
    folder = DATA / f"sf{scale:g}"
    path = folder / "lineitem.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = folder / "made"
        subprocess.run(
            ["tpchgen-cli", "parquet", "-s", f"{scale:g}", "--tables", "lineitem", "--output-dir", str(made)],
            check=True,
            capture_output=True,
        )
        rewrite(made / "lineitem.parquet", path)
    small = folder / "warm-up.parquet"
    if not small.exists():
        import pyarrow.parquet as pq

        pq.write_table(pq.ParquetFile(path).read_row_group(0).slice(0, 8000), small)
    return path


def rewrite(made: Path, path: Path) -> None:
    """With plain strings and 122,880-row groups: Daft can't read the string views that the generator declares."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(made)
    fields = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in file.schema_arrow]
    with pq.ParquetWriter(path, pa.schema(fields), compression="zstd") as writer:
        for batch in file.iter_batches(122_880):
            writer.write_table(pa.Table.from_batches([batch]).cast(writer.schema))
    made.unlink()


def run_one(writer: str, scale: float) -> None:
    from measure import measure
    from pyiceberg.catalog.sql import SqlCatalog

    source = make_source(scale)
    folder = DATA / f"warehouse-{writer}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    catalog = SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("bench")

    def table(name: str) -> Any:
        import pyarrow.parquet as pq

        properties = {
            "write.target-file-size-bytes": str(TARGET),
            "write.parquet.compression-codec": "zstd",
            "write.parquet.compression-level": "1",
        }
        return catalog.create_table(f"bench.{name}", pq.read_schema(source), properties=properties)

    write = _WRITERS[writer]
    warm, real = table("warm"), table("real")

    def describe(_: Any) -> dict[str, Any]:
        files = [task.file for task in real.refresh().scan().plan_files()]
        sizes = [file.file_size_in_bytes for file in files]
        return {
            "rows": sum(file.record_count for file in files),
            "files": len(files),
            "bytes": sum(sizes),
            "sizes": sizes,
        }

    measure(lambda: write(warm, str(source.with_name("warm-up.parquet"))), lambda: write(real, str(source)), describe)
    shutil.rmtree(folder, ignore_errors=True)


def write_daftwrite(table: Any, source: str) -> None:
    import daftwrite as dw

    dw.read_parquet(source).write_iceberg(table, memory=MEMORY)


def write_pyiceberg(table: Any, source: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(source)
    table.append(pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(122_880)))


def write_polars(table: Any, source: str) -> None:
    import polars as pl

    pl.scan_parquet(source).sink_iceberg(table, mode="append")


def write_daft(table: Any, source: str) -> None:
    import daft

    daft.read_parquet(source).write_iceberg(table, mode="append")


_WRITERS = {
    "daftwrite": write_daftwrite,
    "pyiceberg": write_pyiceberg,
    "polars": write_polars,
    "daft": write_daft,
}


def print_table(reports: dict[str, list[dict[str, Any]]]) -> None:
    medians = medians_of(reports, ("wall", "cpu", "peak", "files", "bytes", "rows"))
    ours = yardstick(medians)
    runs = len(next(iter(reports.values())))
    print(f"{int(ours['rows']):,} rows of lineitem.parquet, {os.cpu_count()} cores, medians of {runs} runs")
    print("| writer | wall s | ratio | CPU s | ratio | peak MiB | ratio | files | MB | largest file MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for writer, found in medians.items():
        largest = max(size for run in reports[writer] for size in run["sizes"]) / (1 << 20)
        print(
            f"| {writer} | {found['wall']:.1f} | {found['wall'] / ours['wall']:.2f} | {found['cpu']:.1f} | "
            f"{found['cpu'] / ours['cpu']:.2f} | {found['peak'] / (1 << 20):.0f} | "
            f"{found['peak'] / ours['peak']:.2f} | {found['files']:.0f} | {found['bytes'] / 1e6:.0f} | {largest:.1f} |"
        )


if __name__ == "__main__":
    main()
