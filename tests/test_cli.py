from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

SAMPLE = Path(__file__).parent.parent / "data" / "flights.csv"


@pytest.fixture
def run(tmp_path: Path) -> Any:
    environment = {**os.environ, "HOME": str(tmp_path), "PYICEBERG_HOME": str(tmp_path)}

    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from daftwrite.cli import main; main()", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


def test_a_csv_becomes_an_iceberg_table(run: Any, tmp_path: Path) -> None:
    command = ("write", str(SAMPLE), "iceberg:demo.flights", "--partition-by", "month(time_hour)", "--create")
    done = run(*command)
    assert "demo.flights: snapshot " in done.stdout
    assert "19,811 rows in 13 files" in done.stdout
    assert done.stderr == ""
    again = json.loads(run(*command, "--json").stdout)
    assert again["rows"] == 19_811
    assert sum(file["rows"] for file in again["files"]) == 19_811
    found = json.loads(run("inspect", "iceberg:demo.flights", "--json").stdout)
    assert [snapshot["id"] for snapshot in found["snapshots"]][1] == again["snapshot_id"]
    assert found["partitions"] == ["time_hour_month: month(time_hour)"]
    assert len(found["files"]) == 26
    text = run("inspect", "iceberg:demo.flights").stdout
    assert "time_hour: timestamptz" in text
    assert "39,622 rows" in text


@pytest.mark.parametrize(("form", "compression"), [("parquet", None), ("csv", None), ("csv", "gzip"), ("csv", "zstd")])
def test_directories(run: Any, tmp_path: Path, form: str, compression: str | None) -> None:
    codec = ["--compression", compression] if compression else []
    run("write", str(SAMPLE), "out", "--format", form, "--partition-by", "carrier", *codec)
    found = json.loads(run("inspect", "out", "--json").stdout)
    assert found["format"] == form
    assert found["partitions"] == ["carrier"]
    assert len(found["files"]) == 16
    assert len(found["schema"]) == 18
    refused = run("write", str(SAMPLE), "out", check=False)
    assert refused.returncode == 1
    assert "exists" in refused.stderr
    run("write", str(SAMPLE), "out", "--format", form, "--mode", "append", "--partition-by", "carrier", *codec)
    assert len(json.loads(run("inspect", "out", "--json").stdout)["files"]) > 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("write", str(SAMPLE), "out", "--target-file-size", "12 apples"), "--target-file-size must be"),
        (("write", str(SAMPLE), "out", "--memory", "0"), "--memory must be"),
        (("write", str(SAMPLE), "out", "--compression", "lzo"), "compression must be one of"),
        (("write", str(SAMPLE), "out", "--partition-by", "fortnight(x)"), "can't read partition field"),
        (("write", str(SAMPLE), "out", "--partition-by", "gone"), "'gone' is not in the source"),
        (("write", "gone.csv", "out"), "gone.csv"),
        (("write", "x.json", "out"), "can't tell the format"),
        (("write", str(SAMPLE), "out", "--create"), "--create is for Iceberg"),
        (("write", str(SAMPLE), "iceberg:a.b", "--format", "csv"), "--format is for directories"),
        (("write", str(SAMPLE), "iceberg:a.b"), "doesn't exist"),
        (("write", str(SAMPLE), "s3://bucket/x"), "is not local"),
        (("inspect", "gone"), "neither a directory nor a file"),
        (("inspect", "iceberg:gone.t"), "doesn't exist"),
    ],
)
def test_errors_are_one_message_and_leave_nothing(
    run: Any, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = run(*arguments, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing(tmp_path: Path, number: int) -> None:
    big = tmp_path / "big.parquet"
    table = pa.table({"x": [os.urandom(30).hex() for _ in range(200_000)]})
    with pq.ParquetWriter(big, table.schema) as writer:
        for _ in range(15):
            writer.write_table(table)
    command = [sys.executable, "-c", "from daftwrite.cli import main; main()", "write", str(big), "out"]
    process = subprocess.Popen(
        [*command, "--target-file-size", "5 MiB"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while not list(tmp_path.glob(".out.*.tmp/*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    # On a busy machine the write may end before the signal comes.
    landed = b"interrupted, all was written" in error
    assert landed or b"interrupted, nothing was written" in error
    assert sorted(os.listdir(tmp_path)) == ["big.parquet", *(["out"] if landed else [])]


def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-c", "from daftwrite.cli import main; main()", "write", str(SAMPLE), "out"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=follower)
    os.close(follower)
    shown = b""
    try:
        while piece := os.read(leader, 4096):
            shown += piece
    except OSError:
        pass
    os.close(leader)
    assert process.wait(timeout=60) == 0
    assert b"rows/s" in shown
    assert b"MB written" in shown
    assert ds.dataset(tmp_path / "out").count_rows() == 19_811


def test_without_its_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['click'] = None; from daftwrite.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'daftwrite[cli]'" in done.stderr


def test_importing_starts_no_thread_and_loads_no_optional_library() -> None:
    script = (
        "import sys, threading, daftwrite\n"
        "assert threading.active_count() == 1\n"
        "print([m for m in ('pyiceberg', 'click', 'rich', 'deltalake', 'polars', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_overwrite_by_a_filter(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": range(10), "t": ["x"] * 10}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [3, 4], "t": ["new", "new"]}), tmp_path / "b.parquet")
    run("write", "a.parquet", "iceberg:demo.t", "--create", "--property", "write.parquet.compression-codec=gzip")
    overwrite = ("--mode", "overwrite", "--overwrite-filter", "id in (3, 4)")
    done = run("write", "b.parquet", "iceberg:demo.t", *overwrite, "--snapshot-property", "job=nightly")
    assert "1 old file replaced; 8 of their rows stay, in 1 new file" in done.stdout
    found = json.loads(run("inspect", "iceberg:demo.t", "--json").stdout)
    assert sum(file["rows"] for file in found["files"]) == 10


@pytest.mark.parametrize("dest", ["iceberg:demo.t", "out", "out.csv"])
def test_a_dry_run_tells_and_writes_nothing(run: Any, tmp_path: Path, dest: str) -> None:
    create = ["--create"] if dest.startswith("iceberg:") else []
    pq.write_table(pa.table({"id": [1], "n": pa.array([1], pa.int8())}), tmp_path / "a.parquet")
    before = sorted(tmp_path.rglob("*"))
    size = [] if dest == "out.csv" else ["--target-file-size", "64 MiB"]
    done = run("write", "a.parquet", dest, "--dry-run", *size, *create)
    assert "columns:" in done.stdout
    assert "id  int64 -> " in done.stdout
    if dest != "out.csv":
        assert "target_file_size = 64.0 MiB  (argument)" in done.stdout
    told = json.loads(run("write", "a.parquet", dest, "--dry-run", "--json", *create).stdout)
    assert [column["name"] for column in told["columns"]] == ["id", "n"]
    assert sorted(tmp_path.rglob("*")) == before


def test_branches_schemas_and_replacement(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [2], "x": ["new"]}), tmp_path / "b.parquet")
    run("write", "a.parquet", "iceberg:demo.t", "--create", "--sort-by", "desc(id)")
    run("write", "b.parquet", "iceberg:demo.t", "--schema-mode", "merge", "--branch", "audit")
    assert sum(f["rows"] for f in json.loads(run("inspect", "iceberg:demo.t", "--json").stdout)["files"]) == 1
    run("write", "b.parquet", "iceberg:demo.t", "--stage-only")
    run("write", "b.parquet", "iceberg:demo.t", "--or-replace", "--partition-by", "x")
    found = json.loads(run("inspect", "iceberg:demo.t", "--json").stdout)
    assert found["partitions"] == ["x: identity(x)"]
    assert sum(f["rows"] for f in found["files"]) == 1


def test_modes_of_directories(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    run("write", "a.parquet", "out.csv")
    assert (tmp_path / "out.csv").read_text() == "id\n1\n"
    assert "nothing was written" in run("write", "a.parquet", "out.csv", "--mode", "ignore").stdout
    run("write", "a.parquet", "out")
    assert "1 old file replaced" in run("write", "a.parquet", "out", "--mode", "overwrite").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["out", "--branch", "audit"], "--branch is for Iceberg tables"),
        (["out", "--create"], "--create is for Iceberg tables"),
        (["iceberg:demo.t", "--create", "--property", "x"], "--property takes KEY=VALUE, not 'x'"),
        (["iceberg:demo.t", "--format", "csv"], "--format is for directories"),
        (["iceberg:demo.t", "--create", "--schema-mode", "union"], "--schema-mode must be"),
        (["iceberg:demo.t"], "pass --create to make it"),
        (["iceberg:demo.t", "--sort-by", "id"], "pass --create or --or-replace"),
        (["iceberg:demo.t", "--create", "--overwrite-filter", "id = 1"], "--overwrite-filter needs --mode overwrite"),
        (["out.csv", "--format", "parquet"], "ends as a csv file, and parquet is written"),
        (["out.parquet", "--format", "csv"], "ends as a parquet file, and csv is written"),
        (["out.csv.gz", "--format", "parquet"], "ends as a csv file"),
        (["a.parquet"], "pass --mode overwrite to replace it"),
        (["out.parquet", "--target-file-size", "64 MiB"], "--target-file-size can't be honoured"),
    ],
)
def test_options_that_do_not_fit_the_target_are_refused(
    run: Any, tmp_path: Path, arguments: list[str], message: str
) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    done = run("write", "a.parquet", *arguments, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert [name for name in os.listdir(tmp_path) if name.startswith("out")] == []


def test_snapshots_are_shown_with_their_branches(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    write = ("write", "a.parquet", "iceberg:demo.t")
    run(*write, "--create")
    run(*write)
    run(*write, "--branch", "audit")
    run(*write, "--stage-only")
    found = json.loads(run("inspect", "iceberg:demo.t", "--json").stdout)["snapshots"]
    assert [snapshot["refs"] for snapshot in found] == [[], ["main"], ["audit"], []]
    assert [snapshot["reachable"] for snapshot in found] == [True, True, True, False]
    assert found[3]["parent_id"] == found[2]["parent_id"] == found[1]["id"]
    lines = run("inspect", "iceberg:demo.t").stdout.splitlines()[-4:]
    assert [line.partition("added")[2].strip() for line in lines] == ["", "[main]", "[audit]", "(on no branch)"]
    assert all("1 row added" in line for line in lines)


@pytest.mark.parametrize(
    ("name", "rows"), [("one.parquet", 1), ("one.csv", None), ("one.csv.gz", None), ("one.csv.zst", None)]
)
def test_a_single_file_is_inspected(run: Any, tmp_path: Path, name: str, rows: int | None) -> None:
    pq.write_table(pa.table({"id": [1], "text": ["a"]}), tmp_path / "a.parquet")
    assert "1 row in 1 file," in run("write", "a.parquet", name).stdout
    found = json.loads(run("inspect", name, "--json").stdout)
    assert found["format"] == name.split(".")[1]
    assert [column.partition(":")[0] for column in found["schema"]] == ["id", "text"]
    assert [file["rows"] for file in found["files"]] == [rows]


def test_what_a_user_wrote_is_not_taken_for_an_argument(run: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "partition_by": [1]}), tmp_path / "a.parquet")
    run("write", "a.parquet", "iceberg:demo.t", "--create")
    write = ("write", "a.parquet", "iceberg:demo.t", "--mode", "overwrite", "--overwrite-filter")
    refused = run(*write, "mode='a' and idd=1", check=False).stderr
    assert refused == (
        "daftwrite: --overwrite-filter mode='a' and idd=1: the table has no column 'mode'; it has id, partition_by\n"
    )
    (tmp_path / "partition_by").mkdir()
    run("write", "a.parquet", "partition_by/x.parquet")
    refused = run("write", "a.parquet", "partition_by/x.parquet", check=False).stderr
    assert "partition_by/x.parquet exists; pass --mode overwrite to replace it" in refused
