"""One write in a fresh process: wall, CPU and peak memory as the design measures them."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def status(key: str) -> int:
    """A line of /proc/self/status in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure(warm_up: Callable[[], Any], write: Callable[[], Any], describe: Callable[[Any], dict[str, Any]]) -> None:
    """Run a small write, then the real one, and print what it took as JSON."""
    warm_up()
    base = status("VmRSS")
    reset_peak()
    wall, cpu = time.perf_counter(), cpu_seconds()
    outcome = write()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    peak = status("VmHWM")
    report = {"wall": wall, "cpu": cpu, "peak": peak - base, "base": base, **describe(outcome)}
    json.dump(report, sys.stdout)
