"""Runs the Python blocks of the README and the documentation, each page in a folder of its own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parent


def enter(namespace: dict[str, Any]) -> None:
    folder = tempfile.TemporaryDirectory()
    namespace["_folder"] = folder
    namespace["_before"] = os.getcwd()
    namespace["_home"] = os.environ.get("PYICEBERG_HOME")
    os.environ["PYICEBERG_HOME"] = folder.name
    os.chdir(folder.name)
    os.symlink(ROOT / "data", "data")


def leave(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()
    if namespace["_home"] is None:
        del os.environ["PYICEBERG_HOME"]


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()], patterns=["README.md", "docs/*.md"], setup=enter, teardown=leave
).pytest()
