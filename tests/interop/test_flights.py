"""The flights table, written in every way and read back by other engines.

By carrier and day it makes 5,442 files; that is whole in the soak, and of January and February here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polars.testing import assert_frame_equal
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.expressions import And, EqualTo, GreaterThanOrEqual, IsNull, LessThan

import daftwrite as dw

PARTITIONINGS: dict[str, Any] = {
    "unpartitioned": None,
    "by month": [dw.month("time_hour")],
    "by carrier and day": ["carrier", dw.day("time_hour")],
}


MANY = "by carrier and day"
CASES = [
    pytest.param("unpartitioned", 336_776),
    pytest.param("by month", 336_776),
    pytest.param(MANY, 51_955),
    pytest.param(MANY, 336_776, marks=pytest.mark.soak),
]


@pytest.fixture(scope="session")
def two_months_csv(flights_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = flights_csv.read_text().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("months") / "flights.csv"
    path.write_text("".join([lines[0], *(line for line in lines if line.startswith(("2013,1,", "2013,2,")))]))
    return path


@pytest.fixture
def source(rows: int, flights: pa.Table, flights_csv: Path, two_months_csv: Path) -> tuple[dw.DataFrame, pa.Table]:
    if rows == flights.num_rows:
        return dw.read_csv(flights_csv, infer_schema_rows=-1), flights
    return dw.read_csv(two_months_csv, infer_schema_rows=-1), flights.filter(pc.field("month") <= 2)


def ordered(table: pa.Table | pl.DataFrame) -> pl.DataFrame:
    frame = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.with_columns(pl.col("time_hour").dt.convert_time_zone("UTC")).sort(pl.all())


@pytest.mark.parametrize(("by", "rows"), CASES)
def test_iceberg_reads_back_equal(
    by: str, rows: int, catalog: SqlCatalog, source: tuple[dw.DataFrame, pa.Table]
) -> None:
    frame, flights = source
    result = frame.write_iceberg(
        "ns.flights", catalog=catalog, create=True, partition_by=PARTITIONINGS[by], target_file_size="2 MiB"
    )
    assert result.rows == flights.num_rows == rows
    table = catalog.load_table("ns.flights")
    expected = ordered(flights)
    assert_frame_equal(ordered(table.scan().to_arrow().select(flights.schema.names)), expected)
    paths = [file.path.removeprefix("file://") for file in result.files]
    assert_frame_equal(ordered(duckdb.read_parquet(paths, hive_partitioning=False).pl()), expected)
    assert_frame_equal(ordered(pl.scan_iceberg(table).collect()), expected)


@pytest.mark.parametrize(("by", "rows"), CASES)
def test_counts_under_filters_on_every_column_agree(
    by: str, rows: int, catalog: SqlCatalog, source: tuple[dw.DataFrame, pa.Table]
) -> None:
    frame, flights = source
    frame.write_iceberg(
        "ns.flights", catalog=catalog, create=True, partition_by=PARTITIONINGS[by], target_file_size="1 MiB"
    )
    table = catalog.load_table("ns.flights")
    polars = pl.from_arrow(flights)
    assert isinstance(polars, pl.DataFrame)
    # Planning over thousands of files takes pyiceberg a second a scan.
    names = ["dep_time", "carrier", "time_hour"] if by == MANY and rows < 336_776 else flights.schema.names
    for name in names:
        column = polars[name]
        values = column.drop_nulls().unique().sort()
        low, middle = values[len(values) // 3], values[len(values) // 2]
        given = [low.isoformat(), middle.isoformat()] if name == "time_hour" else [low, middle]
        scans = {
            IsNull(name): column.is_null().sum(),
            EqualTo(name, given[1]): (column == middle).sum(),
            And(GreaterThanOrEqual(name, given[0]), LessThan(name, given[1])): (
                (column >= low) & (column < middle)
            ).sum(),
        }
        for condition, count in scans.items():
            assert table.scan(row_filter=condition, selected_fields=(name,)).to_arrow().num_rows == count, condition


@pytest.mark.parametrize(("by", "rows"), CASES)
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_directories_read_back_equal(
    by: str, rows: int, form: str, tmp_path: Path, source: tuple[dw.DataFrame, pa.Table]
) -> None:
    frame, flights = source
    verb = frame.write_parquet if form == "parquet" else frame.write_csv
    result = verb(tmp_path / "out", partition_by=PARTITIONINGS[by], target_file_size="1 MiB")
    assert result.rows == rows
    names = ", ".join(flights.schema.names)
    partitioned = by != "unpartitioned"
    options = (
        f"hive_partitioning={partitioned}, hive_types_autocast=false" if partitioned else "hive_partitioning=false"
    )
    if form == "parquet":
        read = f"read_parquet('{tmp_path}/out/**/*.parquet', {options})"
    else:
        kinds = {f.name: "BIGINT" if pa.types.is_integer(f.type) else "VARCHAR" for f in flights.schema}
        kinds["time_hour"] = "TIMESTAMPTZ"
        if by == MANY:
            del kinds["carrier"]
        read = f"read_csv('{tmp_path}/out/**/*.csv', {options}, types={kinds})"
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        back = connection.sql(f"select {names} from {read}").pl()
    assert_frame_equal(ordered(back), ordered(flights))


def test_types_of_a_csv_are_detected(flights_csv: Path, flights: pa.Table) -> None:
    schema = dw.read_csv(flights_csv, infer_schema_rows=-1).schema
    assert schema.names == flights.schema.names
    assert schema.field("dep_time").type == pa.int64()
    assert schema.field("time_hour").type == pa.timestamp("us", "UTC")
