"""Parquet: row groups encoded in parallel as small files, assembled into one."""

from __future__ import annotations

from daftwrite.formats.parquet.writer import ParquetFormat

__all__ = ["ParquetFormat"]
