"""The command line: `daftwrite write` and `daftwrite inspect`."""

from __future__ import annotations

import sys

from daftwrite.errors import MissingDependency

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    try:
        from daftwrite._cli.commands import command
    except ImportError as error:
        if error.name not in ("click", "rich"):
            raise
        sys.exit(f"daftwrite: {MissingDependency(str(error.name), 'cli')}")
    command()
