"""Execute, fuse and communicate the step."""
