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
        (("inspect", "gone"), "not a directory"),
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
    assert b"interrupted" in error
    assert sorted(os.listdir(tmp_path)) == ["big.parquet"]


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
