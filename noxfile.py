"""What newcomers and CI run: `nox -s tests`, `lint`, `docs`, `bench`, `soak`."""

from __future__ import annotations

import os

import nox

nox.options.sessions = ["tests", "lint"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def tests(session: nox.Session) -> None:
    """Everything but the long matrices; arguments go to pytest."""
    session.install("-e", ".[iceberg,cli,test]")
    workers = str(min(4, os.cpu_count() or 1))
    session.run("pytest", "-n", workers, "-m", "not soak", *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """The long matrices, whole."""
    session.install("-e", ".[iceberg,cli,test]")
    session.run("pytest", "-m", "soak", "--timeout", "1800", *session.posargs)


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
