from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import daftwrite as dw
from daftwrite.engine.query import Query, QueryError, quote_literal

pytestmark = pytest.mark.anyio


def test_options_of_read_csv(tmp_path: Path) -> None:
    path = tmp_path / "it's.csv"
    path.write_text("zip;n;t\n'01;2';NA;x\n'02';5;\n")
    frame = dw.read_csv(
        path,
        delimiter=";",
        has_header=True,
        null_values=["NA", ""],
        schema_overrides={"zip": "VARCHAR"},
        quote_char="'",
    )
    frame.write_parquet(tmp_path / "out")
    assert pq.read_table(tmp_path / "out").to_pylist() == [
        {"zip": "01;2", "n": None, "t": "x"},
        {"zip": "02", "n": 5, "t": None},
    ]


def test_several_files_and_globs(tmp_path: Path) -> None:
    for name in "ab":
        pq.write_table(pa.table({"x": [name]}), tmp_path / f"{name}.parquet")
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert dw.read_parquet(files).write_parquet(tmp_path / "o").rows == 2
    assert dw.read_parquet(tmp_path / "[ab].parquet").write_parquet(tmp_path / "p").rows == 2


@pytest.mark.parametrize("form", ["glob", "list", "folder"])
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_files_with_other_columns_are_refused_or_joined(tmp_path: Path, kind: str, form: str) -> None:
    (tmp_path / "in").mkdir()
    files = [tmp_path / "in" / f"{name}.{kind}" for name in "ab"]
    for file, data in zip(files, (pa.table({"x": [1]}), pa.table({"x": [2], "new": ["n"]})), strict=True):
        (pq.write_table if kind == "parquet" else pa.csv.write_csv)(data, file)
    read: Any = dw.read_parquet if kind == "parquet" else dw.read_csv
    path = {"glob": tmp_path / "in" / f"*.{kind}", "list": files, "folder": tmp_path / "in" / f"**/*.{kind}"}[form]
    with pytest.raises(
        QueryError, match=f"column 'new' is in .*b.{kind} and not in the first file; pass union_by_name"
    ):
        read(path).write_parquet(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    read(path, union_by_name=True).write_parquet(tmp_path / "out")
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(rows, key=lambda row: row["x"]) == [{"x": 1, "new": None}, {"x": 2, "new": "n"}]


def test_files_with_other_types_are_refused_or_widened(tmp_path: Path) -> None:
    for name, values in (("a", pa.array([1])), ("b", pa.array([2.5]))):
        pq.write_table(pa.table({"x": values}), tmp_path / f"{name}.parquet")
    with pytest.raises(QueryError, match="column 'x' is int64 in the first file, and others need double"):
        dw.read_parquet(tmp_path / "*.parquet").write_parquet(tmp_path / "out")
    dw.read_parquet(tmp_path / "*.parquet", union_by_name=True).write_parquet(tmp_path / "out")
    assert sorted(pq.read_table(tmp_path / "out")["x"].to_pylist()) == [1.0, 2.5]


def test_a_frame_of_files_can_be_written_twice(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    frame = dw.read_parquet(tmp_path / "a.parquet")
    assert [frame.write_parquet(tmp_path / name).rows for name in "op"] == [1, 1]


@pytest.mark.parametrize("path", ["gone.parquet", "s3://b/x.parquet", "https://host/x.parquet", [], ""])
def test_files_that_cannot_be_read(path: object, tmp_path: Path) -> None:
    with pytest.raises((QueryError, dw.ConfigError)):
        dw.read_parquet(path).write_parquet(tmp_path / "out")  # type: ignore[arg-type]  # wrong types are the point
    assert not (tmp_path / "out").exists()


def test_a_file_that_breaks_midway_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("a,b\n" + "1,2\n" * 300_000 + "1,2,3,4\n" + "x,y\n" * 10)
    with pytest.raises(QueryError) as caught:
        dw.read_csv(path, has_header=True, delimiter=",").write_parquet(tmp_path / "out", target_file_size="64 KiB")
    assert caught.value.__cause__ is not None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.csv"]


async def test_a_query_is_interrupted_on_cancellation(tmp_path: Path) -> None:
    endless = dw.DataFrame(Query("select count(*) as n from range(10000000000) a, range(1000) b"))
    with anyio.fail_after(20), anyio.move_on_after(0.3) as scope:
        await endless.write_parquet_async(tmp_path / "out")
    assert scope.cancelled_caught
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [("it's", "'it''s'"), (True, "true"), (3, "3"), (["a", 1], "['a', 1]"), ({"a'b": "X"}, "{'a''b': 'X'}")],
)
def test_literals(value: object, text: str) -> None:
    assert quote_literal(value) == text


def test_what_is_no_literal() -> None:
    with pytest.raises(dw.ConfigError):
        quote_literal(object())
