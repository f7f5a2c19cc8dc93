"""Tables of the matrix, read by pyiceberg and Polars; `nox -s interop` asks all readers for all tables."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.interop.faults import known_fault
from tests.interop.matrix import Case, canonical, cases, expected_rows, filters, write_matrix
from tests.interop.sql import polars_expression, pyiceberg_expression

ALL = list(cases())


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ALL[::4] if case.name])
def test_pyiceberg_and_polars_read_what_was_written(catalog: SqlCatalog, case: Case) -> None:
    check_pyiceberg_and_polars(catalog, case)


@pytest.mark.soak
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in ALL])
def test_pyiceberg_and_polars_read_every_table(catalog: SqlCatalog, case: Case) -> None:
    check_pyiceberg_and_polars(catalog, case)


def check_pyiceberg_and_polars(catalog: SqlCatalog, case: Case) -> None:
    ((_, table, rows),) = write_matrix(catalog, [case]).values()
    schema = table.schema()
    if not known_fault("pyiceberg", case, None):
        assert canonical(table.scan().to_arrow(), schema) == expected_rows(rows, schema)
    assert canonical(pl.scan_iceberg(table).collect().to_arrow(), schema) == expected_rows(rows, schema)
    for condition in filters(case.kind):
        wanted = expected_rows(rows, schema, condition)
        if not known_fault("pyiceberg", case, condition):
            scanned: pa.Table = table.scan(row_filter=pyiceberg_expression(condition)).to_arrow()
            assert canonical(scanned, schema) == wanted, condition
        if not known_fault("polars", case, condition):
            found = pl.scan_iceberg(table).filter(polars_expression(condition)).collect()
            assert canonical(found.to_arrow(), schema) == wanted, condition
