"""Start from better weights."""
