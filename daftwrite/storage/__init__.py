"""Where files are written: nothing is visible before it is published."""
