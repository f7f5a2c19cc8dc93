"""The commands behind `daftwrite.cli`; they need the extra `cli`."""
