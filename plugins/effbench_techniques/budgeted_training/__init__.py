"""The survey's branch budgeted-training."""
