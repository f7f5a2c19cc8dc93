"""Modes of plain directories: which files go, which stay, and what a kill between leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import daftwrite as dw
from tests.conftest import files_below

OLD = pa.table({"k": ["a", "a", "b", None], "n": [1, 2, 3, 4]})
NEW = pa.table({"k": ["b", "c"], "n": [30, 50]})


def numbers(path: Path) -> list[int]:
    found: list[int] = ds.dataset(path, partitioning="hive").to_table()["n"].to_pylist()
    return sorted(found)


def write(path: Path, data: pa.Table = NEW, **options: Any) -> dw.WriteResult:
    return dw.from_arrow(data).write_parquet(path, **options)


def test_overwrite_replaces_all_data_files(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    before = files_below(path)
    result = write(path, mode="overwrite", partition_by=["k"])
    assert numbers(path) == [30, 50]
    assert sorted(os.path.relpath(gone, path) for gone in result.replaced) == before
    assert sorted(os.listdir(path)) == ["k=b", "k=c"]


def test_overwrite_may_change_format_of_partitions_and_schema(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    write(path, pa.table({"x": ["text"]}), mode="overwrite")
    assert ds.dataset(path).to_table().to_pydict() == {"x": ["text"]}
    assert [name for name in files_below(path) if "=" in name] == []


def test_overwrite_never_touches_a_foreign_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    foreign = [
        "notes.txt",
        ".hidden.parquet",
        "_private.parquet",
        "k=b/readme.md",
        "_tmp/x.parquet",
        "data.csv",
        ".git/y.parquet",
    ]
    for name in foreign:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(name)
    write(path, mode="overwrite")
    assert {name: (path / name).read_text() for name in foreign} == {name: name for name in foreign}
    assert len(files_below(path)) == len(foreign) + 1


def test_overwrite_follows_no_links(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    write(path, OLD)
    write(elsewhere, OLD)
    (path / "linked").symlink_to(elsewhere)
    write(path, mode="overwrite")
    assert numbers(elsewhere) == [1, 2, 3, 4]


def test_overwrite_of_a_csv_directory_leaves_parquet(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD)
    dw.from_arrow(OLD).write_csv(path, mode="append")
    dw.from_arrow(NEW).write_csv(path, mode="overwrite")
    assert numbers_of_csv(path) == [30, 50]
    assert numbers_of_parquet(path) == [1, 2, 3, 4]


def numbers_of_csv(path: Path) -> list[int]:
    return sorted(n for (n,) in duckdb.sql(f"select n from '{path}/*.csv'").fetchall())


def numbers_of_parquet(path: Path) -> list[int]:
    return sorted(n for (n,) in duckdb.sql(f"select n from '{path}/*.parquet'").fetchall())


def test_overwrite_makes_a_directory_that_is_missing(tmp_path: Path) -> None:
    write(tmp_path / "out", mode="overwrite")
    assert numbers(tmp_path / "out") == [30, 50]


def test_overwrite_by_nothing_must_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD)
    before = files_below(path)
    with pytest.raises(dw.DataError, match="allow_empty=True"):
        write(path, NEW.slice(0, 0), mode="overwrite")
    assert files_below(path) == before
    write(path, NEW.slice(0, 0), mode="overwrite", allow_empty=True)
    assert numbers(path) == []
    assert ds.dataset(path).schema.names == ["k", "n"]


def test_overwrite_partitions_replaces_those_it_has_rows_of(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    result = write(path, mode="overwrite_partitions", partition_by=["k"])
    assert numbers(path) == [1, 2, 4, 30, 50]
    assert [os.path.relpath(gone, path).split("/")[0] for gone in result.replaced] == ["k=b"]
    with_null = pa.table({"k": pa.array([None], pa.string()), "n": [40]})
    write(path, with_null, mode="overwrite_partitions", partition_by=["k"])
    assert numbers(path) == [1, 2, 30, 40, 50]


def test_overwrite_partitions_knows_them_by_value(tmp_path: Path) -> None:
    odd = pa.table({"k": ["a/b=%é", "ü ", "c"], "n": [1, 2, 3]})
    path = tmp_path / "out"
    write(path, odd, partition_by=["k"])
    write(path, pa.table({"k": ["a/b=%é", "ü "], "n": [10, 20]}), mode="overwrite_partitions", partition_by=["k"])
    assert numbers(path) == [3, 10, 20]


def test_overwrite_partitions_of_two_levels(tmp_path: Path) -> None:
    data = pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"], "n": [1, 2, 3]})
    path = tmp_path / "out"
    write(path, data, partition_by=["a", "b"])
    write(path, pa.table({"a": [1], "b": ["x"], "n": [10]}), mode="overwrite_partitions", partition_by=["a", "b"])
    assert numbers(path) == [2, 3, 10]


def test_overwrite_partitions_by_nothing_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    before = files_below(path)
    write(path, NEW.slice(0, 0), mode="overwrite_partitions", partition_by=["k"])
    assert files_below(path) == before


def test_overwrite_partitions_needs_partitions(tmp_path: Path) -> None:
    with pytest.raises(dw.ConfigError, match="needs partition_by"):
        write(tmp_path / "out", mode="overwrite_partitions")


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_ignore_leaves_what_is_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("out" if kind == "directory" else "out.parquet")
    write(path, OLD)
    before = files_below(tmp_path)
    result = write(path, mode="ignore")
    assert result.skipped
    assert result.files == ()
    assert files_below(tmp_path) == before
    fresh = tmp_path / ("new" if kind == "directory" else "new.parquet")
    assert not write(fresh, mode="ignore").skipped
    assert numbers(fresh) == [30, 50]


def test_a_skipped_write_names_its_target(tmp_path: Path) -> None:
    write(tmp_path / "out")
    result = write(tmp_path / "out", mode="ignore")
    assert result.skipped
    assert result.target == str(tmp_path / "out")
    assert str(result) == f"WriteResult({tmp_path / 'out'}: exists, nothing written)"


def test_ignore_reads_nothing_of_the_source(tmp_path: Path) -> None:
    write(tmp_path / "out", OLD)

    def batches() -> Any:
        raise AssertionError("was asked for")
        yield

    reader = pa.RecordBatchReader.from_batches(NEW.schema, batches())
    assert dw.from_arrow(reader).write_parquet(tmp_path / "out", mode="ignore").skipped


def test_an_unknown_mode_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(dw.ConfigError, match="mode must be one of error, append, overwrite, .*, not 'replace'"):
        write(tmp_path / "out", mode="replace")
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("mode", ["overwrite", "overwrite_partitions"])
def test_a_source_that_fails_removes_nothing(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    before = files_below(path)

    def batches() -> Any:
        yield NEW.to_batches()[0]
        raise RuntimeError("the source broke")

    reader = pa.RecordBatchReader.from_batches(NEW.schema, batches())
    with pytest.raises(Exception, match="the source broke"):
        dw.from_arrow(reader).write_parquet(path, mode=mode, partition_by=["k"])
    assert files_below(path) == before


def test_files_that_come_meanwhile_are_kept_by_an_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD)
    with dw.open_writer(dw.ParquetTarget(path, mode="append")) as other:
        other.write(pa.table({"k": ["z"], "n": [99]}))
        write(path, mode="overwrite")
    assert numbers(path) == [30, 50, 99]


KILLED = """
    import os, signal, sys
    import pyarrow as pa
    import daftwrite as dw
    from daftwrite.tables import intents

    left = int(sys.argv[2])

    def watched(function):
        def run(*arguments, **options):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return function(*arguments, **options)
        return run

    intents._publish = watched(intents._publish)
    intents._remove = watched(intents._remove)
    intents.remove_intent = watched(intents.remove_intent)
    import daftwrite.tables.files as files
    files.remove_intent = watched(files.remove_intent)
    data = pa.table({"k": ["b", "c"], "n": [30, 50]})
    dw.from_arrow(data).write_parquet(sys.argv[1], mode="overwrite", partition_by=["k"])
"""


@pytest.mark.parametrize("step", range(6))
def test_an_overwrite_killed_at_any_step_is_completed_by_the_next_write(tmp_path: Path, step: int) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"])
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(step)], check=False)
    assert killed.returncode == -signal.SIGKILL
    seen = numbers(path)
    # Old files go only when all new ones are there.
    assert {1, 2, 3, 4} <= set(seen) or {30, 50} <= set(seen)
    write(path, pa.table({"k": ["d"], "n": [70]}), mode="append", partition_by=["k"])
    assert numbers(path) == [30, 50, 70]
    assert [name for name in files_below(path) if not name.endswith(".parquet") or "/." in name] == []


@pytest.mark.parametrize("compressed", [False, True])
def test_one_csv_file(tmp_path: Path, compressed: bool) -> None:
    path = tmp_path / ("out.csv.gz" if compressed else "out.csv")
    result = dw.from_arrow(NEW).write_csv(path)
    assert [file.path for file in result.files] == [str(path)]
    assert duckdb.sql(f"select * from '{path}'").fetchall() == [("b", 30), ("c", 50)]
    assert files_below(tmp_path) == [path.name]


def test_one_parquet_file_whatever_its_size(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    write(path, pa.table({"n": range(200_000)}), target_file_size=None, row_group_rows=10_000)
    assert pq.read_metadata(path).num_row_groups == 20
    assert files_below(tmp_path) == ["out.parquet"]


def test_one_file_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "out.parquet", NEW.slice(0, 0))
    assert pq.read_table(tmp_path / "out.parquet").schema.names == ["k", "n"]


def test_a_slash_makes_any_name_a_directory(tmp_path: Path) -> None:
    write(f"{tmp_path}/out.parquet/")  # type: ignore[arg-type]  # text is a path too
    assert (tmp_path / "out.parquet").is_dir()
    write(tmp_path / "out.parquet", mode="append")
    assert numbers(tmp_path / "out.parquet") == [30, 30, 50, 50]


def test_one_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    write(path, OLD)
    with pytest.raises(dw.AlreadyExists, match="out.parquet"):
        write(path)
    assert numbers(path) == [1, 2, 3, 4]
    write(path, mode="overwrite")
    assert numbers(path) == [30, 50]
    assert files_below(tmp_path) == ["out.parquet"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "append"}, "mode must be one of error, overwrite, ignore"),
        ({"partition_by": ["k"]}, "can't be partitioned"),
        ({"write_success_file": True}, "write_success_file is for directories"),
        ({"write_metadata_file": True}, "write_metadata_file is for directories"),
        ({"target_file_size": "1 MiB"}, "target_file_size"),
    ],
)
def test_what_one_file_cannot_be_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(dw.ConfigError, match=message):
        write(tmp_path / "out.parquet", **options)
    assert files_below(tmp_path) == []


@pytest.mark.parametrize("name", ["out.csv", "out.CSV.gz", "out.tsv", "out.csv.zst"])
def test_a_parquet_file_is_not_named_as_csv(tmp_path: Path, name: str) -> None:
    with pytest.raises(dw.ConfigError, match=f"{name}' ends as a csv file, and parquet is written"):
        write(tmp_path / name)
    assert os.listdir(tmp_path) == []
    write(f"{tmp_path / name}/")  # type: ignore[arg-type]  # a slash at the end makes a directory, which Path drops
    assert numbers(tmp_path / name) == [30, 50]
    write(tmp_path / name, mode="append")
    assert numbers(tmp_path / name) == [30, 30, 50, 50]


@pytest.mark.parametrize("name", ["out.parquet", "out.pq"])
def test_a_csv_file_is_not_named_as_parquet(tmp_path: Path, name: str) -> None:
    with pytest.raises(dw.ConfigError, match=f"{name}' ends as a parquet file, and csv is written"):
        dw.from_arrow(NEW).write_csv(tmp_path / name)
    assert os.listdir(tmp_path) == []


def test_a_path_with_a_nul_is_refused(tmp_path: Path) -> None:
    for verb in (dw.from_arrow(NEW).write_parquet, dw.from_arrow(NEW).write_csv):
        with pytest.raises(dw.ConfigError, match="NUL"):
            verb(f"{tmp_path}/a\0b")


def test_a_null_partition_column_asks_for_a_type(tmp_path: Path) -> None:
    data = pa.table({"k": pa.nulls(1), "n": [1]})
    with pytest.raises(dw.SchemaError, match="column 'k' is of type null; cast it"):
        write(tmp_path / "out", data, partition_by="k")


def test_a_name_that_belies_the_codec_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dw.ConfigError, match="compression='zstd'"):
        dw.from_arrow(NEW).write_csv(tmp_path / "out.csv", compression="zstd")


def test_a_failed_overwrite_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    write(path, OLD)

    def batches() -> Any:
        yield NEW.to_batches()[0]
        raise RuntimeError("the source broke")

    with pytest.raises(Exception, match="the source broke"):
        reader = pa.RecordBatchReader.from_batches(NEW.schema, batches())
        dw.from_arrow(reader).write_parquet(path, mode="overwrite")
    assert numbers(path) == [1, 2, 3, 4]
    assert files_below(tmp_path) == ["out.parquet"]


def test_the_metadata_file_has_all_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, partition_by=["k"], write_metadata_file=True)
    assert sorted(ds.parquet_dataset(path / "_metadata").to_table()["n"].to_pylist()) == [1, 2, 3, 4]
    write(path, NEW, mode="append", partition_by=["k"], write_metadata_file=True)
    merged = pq.read_metadata(path / "_metadata")
    assert merged.num_rows == 6
    listed = {merged.row_group(i).column(0).file_path for i in range(merged.num_row_groups)}
    assert listed == {name for name in files_below(path) if name.endswith(".parquet")}
    write(path, NEW, mode="overwrite", partition_by=["k"], write_metadata_file=True)
    assert pq.read_metadata(path / "_metadata").num_rows == 2
    assert sorted(ds.parquet_dataset(path / "_metadata").to_table()["n"].to_pylist()) == [30, 50]


def test_a_metadata_file_that_would_not_know_the_new_files_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, write_metadata_file=True)
    with pytest.raises(dw.ConfigError, match="write_metadata_file=True"):
        write(path, NEW, mode="append")
    write(path, NEW, mode="overwrite")
    assert not (path / "_metadata").exists()


def test_a_metadata_file_over_different_schemas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD)
    before = files_below(path)
    with pytest.raises(dw.SchemaError, match="another schema"):
        write(path, pa.table({"x": [1.5]}), mode="append", write_metadata_file=True)
    assert files_below(path) == before


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_the_success_file_comes_last(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out"
    if mode != "error":
        write(path, OLD)
    write(path, mode=mode, write_success_file=True)
    assert (path / "_SUCCESS").read_bytes() == b""
    assert numbers(path) == ([1, 2, 3, 4, 30, 50] if mode == "append" else [30, 50])


def test_an_overwrite_takes_a_stale_success_file_away(tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path, OLD, write_success_file=True)
    write(path, mode="overwrite")
    assert not (path / "_SUCCESS").exists()


RUNS = st.lists(
    st.tuples(
        st.sampled_from(["append", "overwrite", "overwrite_partitions", "ignore"]),
        st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 99)), max_size=6),
    ),
    max_size=5,
)


@settings(max_examples=40, deadline=None)
@given(RUNS)
def test_any_sequence_of_writes_leaves_what_a_model_says(
    tmp_path_factory: pytest.TempPathFactory, runs: list[tuple[str, list[tuple[str | None, int]]]]
) -> None:
    path = tmp_path_factory.mktemp("model") / "out"
    model: list[tuple[str | None, int]] = []
    exists = False
    for mode, given_rows in runs:
        data = pa.table(
            {
                "k": pa.array([k for k, _ in given_rows], pa.string()),
                "n": pa.array([n for _, n in given_rows], pa.int64()),
            }
        )
        options = {"allow_empty": True} if mode == "overwrite" else {}
        write(path, data, mode=mode, partition_by=["k"], **options)
        if mode == "overwrite":
            model = []
        elif mode == "overwrite_partitions":
            touched = {k for k, _ in given_rows}
            model = [row for row in model if row[0] not in touched]
        if mode != "ignore" or not exists:
            model = model + given_rows
        exists = True
        files = [name for name in files_below(path) if name.endswith(".parquet")]
        found = []
        for name in files:
            key = name.split("/")[0].removeprefix("k=")
            values = pq.ParquetFile(path / name).read()["n"].to_pylist()
            found += [(None if key == "__HIVE_DEFAULT_PARTITION__" else key, n) for n in values]
        assert sorted(found, key=repr) == sorted(model, key=repr)


@pytest.mark.parametrize("name", ["allow_empty", "write_metadata_file", "write_success_file"])
def test_flags_are_true_or_false(tmp_path: Path, name: str) -> None:
    with pytest.raises(dw.ConfigError, match=f"{name} must be True or False, not 'no'"):
        write(tmp_path / "out", mode="overwrite", **{name: "no"})
