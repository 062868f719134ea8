"""Evaluate or continue from an average."""
