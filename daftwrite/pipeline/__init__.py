"""From a source of Arrow data to aligned micro-partitions within a byte budget."""
