"""Finding and opening tables by name."""
