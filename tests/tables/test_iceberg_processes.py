"""Two processes write to one table at random offsets: the table is what some serial order gives, or the loser says why."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform

import daftwrite as dw
from tests.conftest import files_below

SCHEMA = pa.schema([("id", pa.int64())])
FIRST = set(range(20))


def ids(*values: int) -> pa.Table:
    return pa.table({"id": list(values)}, schema=SCHEMA)


def append(table: Table) -> None:
    dw.from_arrow(ids(5, 105)).write_iceberg(table)


def overwrite(table: Table) -> None:
    dw.from_arrow(ids(-1)).write_iceberg(table, mode="overwrite", overwrite_filter="id < 10")


def merge_schema(table: Table) -> None:
    wider = pa.table({"id": [200], "note": ["new"]})
    dw.from_arrow(wider).write_iceberg(table, schema_mode="merge")


def change_spec(table: Table) -> None:
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_bucket")


@dataclass(frozen=True)
class Round:
    folder: str
    name: str
    start: float


def run(operation: Callable[[Table], None], round_: Round) -> str | None:
    """What stands against the operation, in another process; None when it landed."""
    catalog = SqlCatalog("test", uri=f"sqlite:///{round_.folder}/catalog.db", warehouse=f"file://{round_.folder}")
    try:
        table = catalog.load_table(round_.name)
        time.sleep(max(0.0, round_.start - time.time()))
        operation(table)
    except dw.CommitConflict as error:
        return str(error)
    except CommitFailedException as error:
        # The spec is changed by pyiceberg itself.
        return f"pyiceberg: {error}"
    finally:
        catalog.close()
    return None


def warm_up(_: int) -> None:
    time.sleep(0.5)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(warm_up, range(2)))
        yield pool


def check_append_and_overwrite(table: Table, lost: list[str | None]) -> None:
    found = sorted(table.scan().to_arrow()["id"].to_pylist())
    kept = set(range(10, 20))
    append_lost, overwrite_lost = lost
    assert append_lost is None
    if overwrite_lost is None:
        assert found in (sorted([*kept, 105, -1]), sorted([*kept, 5, 105, -1]))
    else:
        assert "added" in overwrite_lost
        assert "rows that the overwrite replaces" in overwrite_lost
        assert found == sorted([*FIRST, 5, 105])


def check_merge_and_append(table: Table, lost: list[str | None]) -> None:
    assert lost == [None, None]
    rows = table.scan().to_arrow()
    assert rows.schema.names == ["id", "note"]
    assert sorted(rows["id"].to_pylist()) == sorted([*FIRST, 5, 105, 200])
    assert rows.filter(pa.compute.is_valid(rows["note"]))["id"].to_pylist() == [200]


def check_spec_and_append(table: Table, lost: list[str | None]) -> None:
    spec_lost, append_lost = lost
    assert append_lost is None
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == sorted([*FIRST, 5, 105])
    assert table.scan(row_filter="id = 105").to_arrow()["id"].to_pylist() == [105]
    assert len(table.specs()) == (2 if spec_lost is None else 1)
    for task in table.scan().plan_files():
        assert len(task.file.partition) == len(table.specs()[task.file.spec_id].fields)


PAIRS = {
    "append-overwrite": (append, overwrite, check_append_and_overwrite),
    "merge-append": (merge_schema, append, check_merge_and_append),
    "spec-append": (change_spec, append, check_spec_and_append),
}


def play(processes: ProcessPoolExecutor, catalog: SqlCatalog, folder: Path, pair: str, rounds: int) -> None:
    first, second, check = PAIRS[pair]
    offsets = random.Random(17)
    for number in range(rounds):
        name = f"ns.t{number}"
        table = catalog.create_table(name, SCHEMA)
        dw.from_arrow(ids(*sorted(FIRST))).write_iceberg(table)
        start = time.time() + 0.02
        shift = offsets.uniform(-0.15, 0.15)
        begun = [
            processes.submit(run, operation, Round(str(folder), name, start + late))
            for operation, late in ((first, max(0.0, shift)), (second, max(0.0, -shift)))
        ]
        lost = [future.result(60) for future in begun]
        check(table.refresh(), lost)
        live = {
            task.file.file_path
            for snapshot in table.snapshots()
            for task in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
        }
        data = {path for path in files_below(folder) if f"t{number}/data/" in path and path.endswith(".parquet")}
        assert len(data) == len(live), "a loser left files behind"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_few_rounds(processes: ProcessPoolExecutor, catalog: SqlCatalog, tmp_path: Path, pair: str) -> None:
    play(processes, catalog, tmp_path / "warehouse", pair, 6)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("pair", PAIRS)
def test_fifty_rounds(processes: ProcessPoolExecutor, catalog: SqlCatalog, tmp_path: Path, pair: str) -> None:
    play(processes, catalog, tmp_path / "warehouse", pair, 50)
