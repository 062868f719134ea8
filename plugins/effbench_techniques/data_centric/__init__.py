"""The survey's branch data-centric."""
