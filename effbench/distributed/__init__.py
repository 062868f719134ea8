"""Trials of several processes: the group they form, and how they are started."""
