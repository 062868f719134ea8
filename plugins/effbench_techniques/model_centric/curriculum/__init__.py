"""Train a smaller or partial network first."""
