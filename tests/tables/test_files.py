from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import daftwrite as dw
from tests.conftest import files_below

DATA = pa.table({"k": ["a", "b", None, "a/b=%é"], "n": [1, 2, 3, 4]})


def test_partition_columns_stand_in_the_path_only(tmp_path: Path) -> None:
    result = dw.from_arrow(DATA).write_parquet(tmp_path / "out", partition_by=["k"])
    assert {file.partition["k"] for file in result.files} == {"a", "b", None, "a/b=%é"}
    for file in result.files:
        assert pq.read_schema(file.path).names == ["n"]
    read = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert sorted(map(str, read.select(["k", "n"]).to_pylist())) == sorted(map(str, DATA.to_pylist()))
    query = f"select k, n from read_parquet('{tmp_path}/out/**/*.parquet', hive_partitioning=true) order by n"
    assert duckdb.sql(query).fetchall() == [("a", 1), ("b", 2), (None, 3), ("a/b=%é", 4)]


def test_columns_of_transforms_stay_in_the_files(tmp_path: Path) -> None:
    data = pa.table({"t": pa.array([-1, 0], pa.timestamp("us")), "n": [1, 2]})
    result = dw.from_arrow(data).write_parquet(tmp_path / "out", partition_by=[dw.month("t")])
    assert [dict(file.partition) for file in result.files] == [{"t_month": "1969-12"}, {"t_month": "1970-01"}]
    assert pq.ParquetFile(result.files[0].path).schema_arrow.names == ["t", "n"]


def test_csv_partitions(tmp_path: Path) -> None:
    dw.from_arrow(DATA).write_csv(tmp_path / "out", partition_by="k", compression="gzip")
    query = f"select k, n from read_csv('{tmp_path}/out/**/*.csv.gz', hive_partitioning=true) order by n"
    assert duckdb.sql(query).fetchall() == [("a", 1), ("b", 2), (None, 3), ("a/b=%é", 4)]


@pytest.mark.parametrize("kind", ["directory", "empty directory", "file", "dangling link"])
def test_a_path_that_exists_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    if kind == "file":
        path.write_text("mine")
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.mkdir()
        if kind == "directory":
            (path / "x").write_text("mine")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(dw.AlreadyExists, match="mode='append'"):
        dw.from_arrow(DATA).write_parquet(path)
    assert sorted(os.listdir(tmp_path)) == before


def test_append_adds_files_and_touches_no_other(tmp_path: Path) -> None:
    path = tmp_path / "out"
    dw.from_arrow(DATA).write_parquet(path)
    (path / "foreign.txt").write_text("mine")
    before = files_below(path)
    result = dw.from_arrow(DATA).write_parquet(path, mode="append")
    assert set(files_below(path)) - set(before) == {Path(file.path).name for file in result.files}
    assert ds.dataset(path, exclude_invalid_files=True).count_rows() == 8


def test_append_makes_a_directory_that_is_missing(tmp_path: Path) -> None:
    dw.from_arrow(DATA).write_parquet(tmp_path / "a" / "b", mode="append")
    assert ds.dataset(tmp_path / "a" / "b").count_rows() == 4


def test_append_to_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    with pytest.raises(dw.AlreadyExists, match="is a file"):
        dw.from_arrow(DATA).write_parquet(tmp_path / "out", mode="append")


def test_a_directory_that_appears_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with pytest.raises(dw.AlreadyExists, match="appeared"):
        with dw.open_writer(dw.ParquetTarget(path)) as writer:
            writer.write(DATA)
            path.mkdir()
            (path / "theirs").write_text("x")
    assert files_below(tmp_path) == ["out/theirs"]


def test_nothing_is_visible_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "out"
    with dw.open_writer(dw.ParquetTarget(path), target_file_size="1 KiB") as writer:
        for _ in range(50):
            writer.write(DATA)
        assert not path.exists()
    assert ds.dataset(path).count_rows() == 200
    with dw.open_writer(dw.ParquetTarget(path, mode="append"), target_file_size="1 KiB") as writer:
        for _ in range(50):
            writer.write(DATA)
        assert ds.dataset(path).count_rows() == 200
    assert ds.dataset(path).count_rows() == 400
    assert not [name for name in files_below(path) if not name.endswith(".parquet") or name.startswith(".")]


def test_an_empty_source_makes_a_file_that_tells_the_schema(tmp_path: Path) -> None:
    empty = DATA.slice(0, 0)
    result = dw.from_arrow(empty).write_parquet(tmp_path / "p")
    assert pq.read_table(result.files[0].path).equals(empty)
    dw.from_arrow(empty).write_csv(tmp_path / "c")
    assert [p.read_text() for p in (tmp_path / "c").iterdir()] == ["k,n\n"]
    assert dw.from_arrow(empty).write_parquet(tmp_path / "p", mode="append").files == ()
    assert dw.from_arrow(empty).write_parquet(tmp_path / "q", partition_by="k").files == ()
    assert (tmp_path / "q").is_dir()


@pytest.mark.parametrize(
    ("data", "by", "message"),
    [
        (pa.table({}), None, "no columns"),
        (pa.table({"a": [1], "A": [2]}), None, "differ only in letter case"),
        (pa.Table.from_arrays([[1], [2]], names=["a", "a"]), None, "stands twice"),
        (DATA, ["x"], "'x' is not in the source"),
        (DATA, [dw.year("k")], "'k': year doesn't take string"),
        (DATA, ["k", "n"], "nothing would be left"),
        (DATA, [dw.PartitionField("k", dw.bucket(2, "k").transform, "n")], "name of a column"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path, data: pa.Table, by: Any, message: str) -> None:
    with pytest.raises(dw.SchemaError, match=message):
        dw.from_arrow(data).write_parquet(tmp_path / "out", partition_by=by)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("path", ["s3://bucket/x", "gs://b/x", ""])
def test_paths_that_are_not_local_are_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dw.ConfigError, match="path"):
        dw.from_arrow(DATA).write_parquet(path)
    assert os.listdir(tmp_path) == []


def test_a_file_uri_is_local(tmp_path: Path) -> None:
    dw.from_arrow(DATA).write_parquet(f"file://{tmp_path}/out")
    assert ds.dataset(tmp_path / "out").count_rows() == 4


@pytest.mark.parametrize("published", [0, 1, 2])
def test_an_append_killed_while_publishing_is_completed_by_the_next(tmp_path: Path, published: int) -> None:
    path = tmp_path / "out"
    dw.from_arrow(DATA).write_parquet(path)
    files = []
    for i in range(2):
        hidden = path / f".new-{i}.parquet.tmp"
        pq.write_table(DATA, hidden)
        files.append({"file": f"new-{i}.parquet", "temporary": hidden.name})
    (path / "_daftwrite").mkdir()
    (path / "_daftwrite" / "0123.json").write_text(json.dumps({"mode": "append", "files": files}))
    for i in range(published):
        (path / f".new-{i}.parquet.tmp").rename(path / f"new-{i}.parquet")
    dw.from_arrow(DATA).write_parquet(path, mode="append")
    assert ds.dataset(path).count_rows() == 16
    assert not (path / "_daftwrite").exists()
    assert [name for name in os.listdir(path) if name.startswith(".")] == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "size=1m")


@pytest.fixture
def read_only_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path, "size=1m,ro")


def mounted(tmp_path: Path, options: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("mode", ["error", "append"])
@pytest.mark.parametrize("format_", ["parquet", "csv"])
def test_a_full_disk_leaves_nothing(small_disk: Path, mode: str, format_: str) -> None:
    if mode == "append":
        dw.from_arrow(DATA).write_parquet(small_disk / "out")
    before = files_below(small_disk)
    noise = pa.table({"x": [os.urandom(1000).hex() for _ in range(2000)]})
    verb = getattr(dw.from_arrow([noise] * 5), f"write_{format_}")
    with pytest.raises(dw.StoreError, match="No space left") as caught:
        verb(small_disk / "out", mode=mode, target_file_size="300 KiB")
    assert isinstance(caught.value.__cause__, OSError)
    assert files_below(small_disk) == before
    assert sorted(os.listdir(small_disk)) == (["out"] if mode == "append" else [])


def test_a_read_only_mount_is_one_clear_error(read_only_disk: Path) -> None:
    with pytest.raises(dw.StoreError, match=r"Read-only file system"):
        dw.from_arrow(DATA).write_parquet(read_only_disk / "out")


def test_an_iceberg_table_on_a_full_disk(small_disk: Path, tmp_path: Path) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("t", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{small_disk}")
    catalog.create_namespace("ns")
    table = catalog.create_table("ns.t", pa.schema([("x", pa.string())]))
    before = files_below(small_disk)
    noise = pa.table({"x": [os.urandom(1000).hex() for _ in range(2000)]})
    with pytest.raises(dw.StoreError, match="No space left"):
        dw.from_arrow([noise] * 5).write_iceberg(table, target_file_size="300 KiB")
    assert files_below(small_disk) == before
    assert table.refresh().current_snapshot() is None
    catalog.close()


def test_a_process_killed_while_writing_shows_readers_nothing(tmp_path: Path) -> None:
    script = (
        "import daftwrite as dw, pyarrow as pa, os, signal\n"
        "def rows():\n"
        "    for i in range(200):\n"
        "        if i == 150: os.kill(os.getpid(), signal.SIGKILL)\n"
        "        yield pa.record_batch({'x': [os.urandom(500).hex() for _ in range(100)]})\n"
        f"dw.from_arrow(rows()).write_parquet({str(tmp_path / 'out')!r}, mode='append', "
        "target_file_size='200 KiB', memory='1 MiB')\n"
    )
    dw.from_arrow(pa.table({"x": ["first"]})).write_parquet(tmp_path / "out")
    done = subprocess.run(["python", "-c", script], check=False, capture_output=True)
    assert done.returncode == -9
    assert ds.dataset(tmp_path / "out").count_rows() == 1
    shutil.rmtree(tmp_path / "out")
