"""Running writers alternately, each run in a fresh process."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

Reports = dict[str, list[dict[str, Any]]]
Medians = dict[str, dict[str, float]]


def run_writers(
    script: str,
    description: str | None,
    writers: Sequence[str],
    run_one: Callable[[str, float], None],
    prepare: Callable[[float], object],
    print_table: Callable[[Reports], None],
) -> None:
    """A benchmark's command line: all writers by turns, and with `--one` the run of a single one in this process."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--scale", type=float, default=2.0, help="TPC-H scale; 2 is 12 M rows")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--writers", nargs="*", default=list(writers), help=f"some of {', '.join(writers)}")
    parser.add_argument("--one", choices=writers, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.one, arguments.scale)
        return
    chosen = [writer for writer in arguments.writers if writer in writers]
    for other in set(arguments.writers) - set(chosen):
        print(f"{script} has no writer {other}, only {', '.join(writers)}", file=sys.stderr)
    if not chosen:
        return
    prepare(arguments.scale)
    reports: Reports = {writer: [] for writer in chosen}
    for _ in range(arguments.runs):
        for writer in chosen:
            command = [sys.executable, script, "--one", writer, "--scale", str(arguments.scale)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{writer} failed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            reports[writer].append(json.loads(done.stdout.strip().splitlines()[-1]))
    print_table(reports)


def medians_of(reports: Reports, keys: Sequence[str]) -> Medians:
    """The median of each figure, for the writers that ran."""
    return {
        writer: {key: statistics.median(run[key] for run in runs) for key in keys}
        for writer, runs in reports.items()
        if runs
    }


def yardstick(medians: Medians) -> dict[str, float]:
    """What ratios are to: daftwrite, or else the first writer."""
    return medians.get("daftwrite") or next(iter(medians.values()))
