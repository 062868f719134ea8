"""The survey's branch model-centric."""
