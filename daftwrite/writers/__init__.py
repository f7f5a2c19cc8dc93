"""The writer stack: partition, file-size and row-group sizers."""
