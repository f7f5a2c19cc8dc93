"""All tables of the matrix, read by DuckDB, iceberg-rust with DataFusion, and Iceberg's Java library.

`nox -s interop` makes the readers' environments and names them in DAFTWRITE_READERS.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

from tests.interop.faults import known_fault
from tests.interop.matrix import Case, Filter, canonical, canonical_value, cases, expected_rows, filters, write_matrix
from tests.interop.sql import where

READERS = os.environ.get("DAFTWRITE_READERS", "")
HERE = Path(__file__).parent / "readers"
JARS = ("hadoop-client-api", "hadoop-client-runtime", "slf4j-api", "commons-logging", "zstd-jni", "snappy-java")

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(not READERS, reason="nox -s interop makes the readers"),
    pytest.mark.timeout(900),
]

Rows = list[tuple[Any, ...]]
Matrix = dict[str, tuple[Case, Table, pa.Table]]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    folder = tmp_path_factory.mktemp("matrix")
    catalog = SqlCatalog("m", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace("ns")
    yield write_matrix(catalog, list(cases()))
    catalog.close()


def questions(matrix: Matrix) -> Iterator[tuple[str, Case, Table, pa.Table, Filter | None]]:
    for name, (case, table, rows) in matrix.items():
        yield f"{name}.all", case, table, rows, None
        for number, condition in enumerate(filters(case.kind)):
            yield f"{name}.{number}", case, table, rows, condition


def python_reader(script: str, dialect: str) -> Callable[[Matrix, Path], None]:
    def run(matrix: Matrix, folder: Path) -> None:
        requests = [
            {
                "metadata": table.metadata_location,
                "where": where(condition, dialect) if condition else "",
                "out": str(folder / key),
            }
            for key, _, table, _, condition in questions(matrix)
        ]
        python = Path(READERS) / dialect / "bin" / "python"
        while requests:
            (folder / "requests").write_text(json.dumps(requests))
            command = [str(python), str(HERE / script), str(folder / "requests")]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            requests = [r for r in requests if not any(Path(r["out"] + end).exists() for end in ("", ".error"))]
            if requests:
                # The reader itself died.
                Path(requests.pop(0)["out"] + ".error").write_text(done.stderr)

    return run


def java(matrix: Matrix, folder: Path) -> None:
    lines = []
    for key, _, table, _, condition in questions(matrix):
        column, operator, value = (
            ("", "", "") if condition is None else (condition.column, condition.op, java_text(condition.value))
        )
        lines.append("\t".join([table.metadata_location, column, operator, value, str(folder / key)]))
    (folder / "requests").write_text("\n".join(lines))
    (site,) = (Path(READERS) / "java" / "lib").glob("python*/site-packages")
    jars = [next((site / "snowpark_connect_deps_iceberg").rglob("iceberg-spark-runtime-3.5_2.12-1.10.2.jar"))]
    jars += [next((site / "pyspark" / "jars").glob(f"{name}-[0-9]*.jar")) for name in JARS]
    classes = ":".join(map(str, jars))
    command = ["java", "-Xmx1g", "-cp", classes, str(HERE / "IcebergReader.java"), str(folder / "requests")]
    subprocess.run(command, check=True)


def java_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def arrow_rows(path: Path, schema: Schema) -> Rows:
    with pa.memory_map(str(path)) as source:
        return canonical(pa.ipc.open_file(source).read_all(), schema)


def json_rows(path: Path, schema: Schema) -> Rows:
    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    rows = [frozen(json.loads(line)) for line in path.read_text().splitlines()]
    return sorted((tuple(map(plain, row, schema.fields)) for row in rows), key=repr)


def plain(value: Any, field: Any) -> Any:
    """Java's text of times leaves zeros out; Python's has them."""
    if value is not None and str(field.field_type) == "time":
        return str(dt.time.fromisoformat(value))
    if value is not None and str(field.field_type).startswith("decimal"):
        return canonical_value(Decimal(value), field.field_type)
    return value


@pytest.mark.parametrize(
    ("reader", "run", "read"),
    [
        ("duckdb", python_reader("duckdb_reader.py", "duckdb"), arrow_rows),
        ("datafusion", python_reader("datafusion_reader.py", "datafusion"), arrow_rows),
        ("java", java, json_rows),
    ],
    ids=["duckdb", "datafusion", "java"],
)
def test_a_reader_finds_what_was_written(
    matrix: Matrix,
    tmp_path: Path,
    reader: str,
    run: Callable[[Matrix, Path], None],
    read: Callable[[Path, Schema], Rows],
) -> None:
    run(matrix, tmp_path)
    wrong = []
    faults = []
    for key, case, table, rows, condition in questions(matrix):
        wanted = expected_rows(rows, table.schema(), condition)
        error = Path(f"{tmp_path / key}.error")
        problem = error.read_text() if error.exists() else None
        if problem is None and (found := read(tmp_path / key, table.schema())) != wanted:
            problem = f"found {set(found) - set(wanted)} instead of {set(wanted) - set(found)}"
        fault = known_fault(reader, case, condition)
        if problem and fault:
            faults.append(key)
        elif problem:
            wrong.append(f"{reader} {key} {condition}: {problem[:500]}")
    print(f"{reader}: {len(list(questions(matrix)))} reads, {len(faults)} with a known fault of the reader")  # noqa: T201  # the session's report
    assert not wrong, "\n".join(wrong)
