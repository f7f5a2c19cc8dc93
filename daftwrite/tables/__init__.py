"""Table formats: what a write needs to know first, and the commit at its end."""
