"""Augment the examples."""
