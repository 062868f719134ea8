"""Choose in which order, length or resolution."""
