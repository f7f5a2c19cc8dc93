"""Runs the Python and shell blocks of the README and the documentation, each page in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parent
INSTALLATION = re.compile(r"pip install \S+( && )?")


def run_shell(example: Example) -> None:
    """Run the commands but for installations, which tests have behind them, and sessions of nox."""
    commands = INSTALLATION.sub("", str(example.parsed))
    if "nox" in commands:
        return
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    subprocess.run(["bash", "-euc", commands], check=True, env={**os.environ, "PATH": path})


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
    parsers=[PythonCodeBlockParser(), CodeBlockParser("bash", run_shell)],
    patterns=["README.md", "docs/*.md"],
    setup=enter,
    teardown=leave,
).pytest()
