"""What newcomers and CI run: `nox -s tests`, `lint`, `docs`, `bench`, `soak`, `interop`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox

nox.options.sessions = ["tests", "lint"]
nox.options.reuse_existing_virtualenvs = True


def install_postgres(session: nox.Session) -> None:
    """Debian's PostgreSQL, where it is missing and can be installed; its tests are skipped elsewhere."""
    if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")) and shutil.which("apt-get") and os.geteuid() == 0:
        session.run("apt-get", "update", "-q", external=True, success_codes=[0, 100])
        session.run("apt-get", "install", "-q", "-y", "postgresql", external=True, success_codes=[0, 100])


@nox.session
def tests(session: nox.Session) -> None:
    """Everything but the long matrices; arguments go to pytest."""
    session.install("-e", ".[iceberg,cli,test]")
    install_postgres(session)
    workers = str(min(4, os.cpu_count() or 1))
    session.run("pytest", "-n", workers, "-m", "not soak and not interop", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """The long matrices, whole."""
    session.install("-e", ".[iceberg,cli,test]")
    session.run("pytest", "-m", "soak", "--timeout", "1800", *session.posargs)


# Readers that need other versions than the writer have environments of their own.
READERS = {
    "duckdb": [
        "duckdb==1.5.5",
        "duckdb-extension-avro==1.5.5",
        "duckdb-extension-iceberg==1.5.5",
        "duckdb-extensions==1.5.5",
        "pyarrow>=25,<26",
        "pytz>=2024.1",
    ],
    "datafusion": [
        "datafusion>=53,<54",
        "pyarrow>=25,<26",
        "pyiceberg-core==0.10.1",
        "pyiceberg[sql-sqlite]==0.12.0",
    ],
    "java": ["pyspark>=3.5,<3.6", "snowpark-connect-deps-iceberg==1.0.2"],
}


@nox.session
def interop(session: nox.Session) -> None:
    """Every table of the matrix, read by all independent readers; needs Java 17."""
    session.install("-e", ".[iceberg,cli,test]")
    folder = Path(session.cache_dir).resolve() / "readers"
    for name, packages in READERS.items():
        session.run(sys.executable, "-m", "venv", str(folder / name), external=True)
        python = str(folder / name / "bin" / "python")
        session.run(python, "-m", "pip", "install", "-q", *packages, external=True)
    session.env["DAFTWRITE_READERS"] = str(folder)
    session.run("pytest", "-s", "tests/interop/test_readers.py", *session.posargs)
    session.run("pytest", "-m", "interop", "tests/catalog", *session.posargs)
    session.run("pytest", "-m", "soak", "tests/interop/test_matrix.py", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and types."""
    session.install("-e", ".[iceberg,cli,lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, with warnings as errors."""
    session.install("-e", ".[iceberg,cli,docs]")
    session.run("mkdocs", "build", "--strict", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """The benchmarks beside other writers; arguments go to them."""
    session.install("-e", ".[iceberg,bench]")
    session.run("python", "benchmarks/lineitem_to_iceberg.py", *session.posargs)
    session.run("python", "benchmarks/overwrite_by_filter.py", *session.posargs)
