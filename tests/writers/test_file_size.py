from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import daftwrite as dw

MIB = 1 << 20


def random_batches(rows: int, width: int) -> list[pa.RecordBatch]:
    chance = np.random.default_rng(7)
    batches = []
    for start in range(0, rows, 5000):
        texts = [chance.bytes(int(chance.integers(width // 2, width))).hex() for _ in range(5000)]
        batches.append(pa.record_batch({"id": np.arange(start, start + 5000), "text": texts}))
    return batches


def drifting_batches() -> list[pa.RecordBatch]:
    """Data that compresses worse and worse."""
    chance = np.random.default_rng(7)
    return [pa.record_batch({"v": chance.integers(0, 2 ** (10 + k // 6), 20_000)}) for k in range(120)]


@pytest.mark.parametrize("memory", ["8 MiB", "64 MiB"])
@pytest.mark.parametrize("target", [1 * MIB, 4 * MIB])
@pytest.mark.parametrize("format_", ["parquet", "csv", "csv.zst"])
@pytest.mark.parametrize("data", ["random", "drifting"])
def test_files_end_within_a_tenth_of_the_target(
    data: str, format_: str, target: int, memory: str, tmp_path: Path
) -> None:
    batches = random_batches(100_000, 200) if data == "random" else drifting_batches()
    frame = dw.from_arrow(batches)
    if format_ == "parquet":
        result = frame.write_parquet(tmp_path / "out", target_file_size=target, memory=memory)
    else:
        codec = "zstd" if format_ == "csv.zst" else None
        result = frame.write_csv(tmp_path / "out", target_file_size=target, compression=codec, memory=memory)
    sizes = [file.nbytes for file in result.files]
    assert len(sizes) > 1
    off = [round(size / target, 3) for size in sizes[:-1] if not 0.9 <= size / target <= 1.1]
    assert not off, sizes
    assert [Path(file.path).stat().st_size for file in result.files] == sizes


def test_rows_keep_their_order_within_and_across_files(tmp_path: Path) -> None:
    result = dw.from_arrow(random_batches(50_000, 200)).write_parquet(tmp_path / "out", target_file_size="1 MiB")
    ids = pa.concat_tables([pq.read_table(file.path) for file in result.files])["id"]
    assert ids.to_pylist() == list(range(50_000))


def test_row_groups_are_cut_by_bytes_and_rows(tmp_path: Path) -> None:
    frame = dw.from_arrow(random_batches(60_000, 200))
    result = frame.write_parquet(tmp_path / "rows", row_group_rows=7000)
    metadata = pq.read_metadata(result.files[0].path)
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert max(groups) <= 7000
    result = frame.write_parquet(tmp_path / "bytes", row_group_size="512 KiB")
    metadata = pq.read_metadata(result.files[0].path)
    sizes = [
        sum(metadata.row_group(i).column(c).total_compressed_size for c in range(2))
        for i in range(metadata.num_row_groups)
    ]
    assert len(sizes) > 5
    assert max(sizes[1:]) <= 1.1 * 512 * 1024


def test_single_rows_are_collected(tmp_path: Path) -> None:
    frame = dw.from_arrow(pa.record_batch({"id": [i]}) for i in range(3000))
    result = frame.write_parquet(tmp_path / "out")
    (file,) = result.files
    assert len(file.split_offsets) == 1
    assert pq.read_table(file.path)["id"].to_pylist() == list(range(3000))


def test_many_partitions_within_a_small_budget(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    batches = [
        pa.record_batch({"p": chance.integers(0, 300, 5000), "row": np.arange(k * 5000, k * 5000 + 5000)})
        for k in range(40)
    ]
    resources = dw.Resources("2 MiB")
    result = dw.from_arrow(batches).write_parquet(tmp_path / "out", partition_by="p", memory=resources)
    assert resources.budget.peak <= resources.budget.limit
    assert resources.budget.in_use == 0
    assert result.rows == 200_000
    table = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert sorted(table["row"].to_pylist()) == list(range(200_000))
    for file in result.files[:20]:
        rows = pq.read_table(file.path, partitioning=None)["row"].to_pylist()
        assert rows == sorted(rows)
