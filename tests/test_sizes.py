from __future__ import annotations

import pytest

from daftwrite import ConfigError
from daftwrite.sizes import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        (1, 1),
        ("64 MiB", 67_108_864),
        ("64MB", 64_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("10", 10),
        ("7 b", 7),
    ],
)
def test_reads_sizes(text: str | int, nbytes: int) -> None:
    assert parse_size(text, "x") == nbytes


@pytest.mark.parametrize("text", [0, -1, "0", "12 apples", "", "MiB", "-5 MiB", True, None, 1.5, "0.1 B"])
def test_refuses_what_is_no_size(text: object) -> None:
    with pytest.raises(ConfigError, match="target_file_size must be a positive number of bytes"):
        parse_size(text, "target_file_size")  # type: ignore[arg-type]  # wrong types are the point


def test_writes_sizes() -> None:
    assert [format_size(n) for n in (0, 1023, 1536, 5 << 20, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 TiB",
    ]
