from __future__ import annotations

import inspect

import pyarrow as pa
import pytest

import daftwrite as dw


def test_public_names() -> None:
    assert dw.__all__ == sorted(dw.__all__)
    for name in dw.__all__:
        made = getattr(dw, name)
        assert inspect.getdoc(made), name


def test_every_verb_has_a_twin_with_the_same_arguments() -> None:
    verbs = [name for name in dir(dw.DataFrame) if name.startswith("write_") and not name.endswith("_async")]
    assert verbs == ["write_csv", "write_iceberg", "write_parquet"]
    for verb in verbs:
        sync, twin = getattr(dw.DataFrame, verb), getattr(dw.DataFrame, f"{verb}_async")
        assert inspect.iscoroutinefunction(twin)
        assert inspect.signature(sync) == inspect.signature(twin)


def test_every_error_says_when_it_is_raised() -> None:
    errors = [
        made for name in dw.__all__ if isinstance(made := getattr(dw, name), type) and issubclass(made, Exception)
    ]
    assert len(errors) == 13
    for error in errors:
        assert issubclass(error, dw.DaftwriteError)
        assert (inspect.getdoc(error) or "").startswith("Raised when"), error


def test_the_schema_of_a_frame() -> None:
    table = pa.table({"a": [1]})
    assert dw.from_arrow(table).schema == table.schema
    with pytest.raises(dw.ConfigError, match="first batch"):
        _ = dw.from_arrow(iter([table])).schema
