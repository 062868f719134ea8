"""Parallelism and memory."""
