"""The survey's branch system-centric."""
