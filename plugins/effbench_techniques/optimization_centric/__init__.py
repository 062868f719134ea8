"""The survey's branch optimization-centric."""
