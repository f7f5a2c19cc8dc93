"""Memory and file sizes on TPC-H lineitem, measured in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

SCRIPT = """
import json, sys
from pathlib import Path
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
import daftwrite as dw

source, folder, memory, target, by, verb, cut = sys.argv[1:8]
catalog = SqlCatalog("m", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
catalog.create_namespace("ns")
warm = Path(folder, "warm.parquet")
pq.write_table(pq.ParquetFile(source).read_row_group(0).slice(0, 8000), warm)
fields = [dw.month("l_shipdate")] if by == "month" else None

def write(path, name):
    return dw.read_parquet(path).write_iceberg(
        name, catalog=catalog, create=True, memory=memory, target_file_size=target, partition_by=fields)

def overwrite(path, name):
    new = dw.from_arrow(pq.read_table(warm).slice(0, 10))
    table = catalog.load_table(name)
    return new.write_iceberg(table, mode="overwrite", overwrite_filter=cut, memory=memory)

def status(key):
    for line in open("/proc/self/status"):
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024

write(str(warm), "ns.warm")
if verb == "overwrite":
    write(source, "ns.real")
    overwrite(source, "ns.warm")
base = status("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
result = (write if verb == "write" else overwrite)(source, "ns.real")
peak = status("VmHWM") - base
print(json.dumps({"peak": peak, "rows": result.rows, "sizes": [f.nbytes for f in result.files],
                  "accounted": result.peak_accounted_nbytes, "replaced": len(result.replaced),
                  "total": catalog.load_table("ns.real").scan().count()}))
"""

MIB = 1 << 20
CUT = "l_shipdate >= '1995-03-01' and l_shipdate < '1995-03-26'"


def measured(
    source: Path, folder: Path, memory: str, target: str, by: str = "none", verb: str = "write"
) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    command = [sys.executable, "-c", SCRIPT, str(source), str(folder), memory, target, by, verb, CUT]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("by", ["none", "month"])
def test_a_sample_stays_within_its_memory(lineitem: Path, tmp_path: Path, by: str) -> None:
    found = measured(lineitem, tmp_path / "w", "256 MiB", "4 MiB", by)
    assert found["rows"] == 600_572
    assert found["accounted"] <= 0.75 * 256 * MIB
    assert found["peak"] <= 1.5 * 256 * MIB
    if by == "none":
        assert all(0.9 <= size / (4 * MIB) <= 1.1 for size in found["sizes"][:-1]), found["sizes"]


@pytest.mark.parametrize("by", ["none", "month"])
def test_an_overwrite_that_cuts_through_files_stays_within_its_memory(lineitem: Path, tmp_path: Path, by: str) -> None:
    found = measured(lineitem, tmp_path / "w", "256 MiB", "4 MiB", by, "overwrite")
    matched = duckdb.sql(f"select count(*) from '{lineitem}' where {CUT}")
    ((removed,),) = matched.fetchall()
    assert found["total"] == 600_572 - removed + 10
    assert found["replaced"] == 1 if by == "month" else found["replaced"] > 1
    assert found["accounted"] <= 0.75 * 256 * MIB
    assert found["peak"] <= 1.5 * 256 * MIB


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_overwrite_of_twelve_million_rows_in_256_mib(large_lineitem: Path, tmp_path: Path) -> None:
    found = measured(large_lineitem, tmp_path / "w", "256 MiB", "64 MiB", "none", "overwrite")
    assert found["replaced"] > 1
    assert found["accounted"] <= 0.75 * 256 * MIB
    assert found["peak"] <= 1.25 * 256 * MIB


@pytest.fixture(scope="session")
def large_lineitem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tpch2")
    command = ["tpchgen-cli", "parquet", "-s", "2", "--tables", "lineitem", "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "lineitem.parquet"


@pytest.mark.soak
@pytest.mark.parametrize("target", [32, 64, 128])
def test_twelve_million_rows_in_512_mib(large_lineitem: Path, tmp_path: Path, target: int) -> None:
    found = measured(large_lineitem, tmp_path / "w", "512 MiB", f"{target} MiB")
    assert found["rows"] == 11_997_996
    assert found["peak"] <= 512 * MIB
    assert all(0.9 <= size / (target * MIB) <= 1.1 for size in found["sizes"][:-1]), found["sizes"]


@pytest.mark.soak
def test_twelve_million_rows_by_month_in_512_mib(large_lineitem: Path, tmp_path: Path) -> None:
    found = measured(large_lineitem, tmp_path / "w", "512 MiB", "64 MiB", "month")
    assert found["rows"] == 11_997_996
    assert found["peak"] <= 512 * MIB
