"""Batch size, and what makes it work."""
