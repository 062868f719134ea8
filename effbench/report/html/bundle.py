"""Plotly's JavaScript as the page carries it: packed, so that it costs the file 2 MB and not 5."""

from __future__ import annotations

import base64
import gzip
import importlib.resources


def packed() -> str:
    """Return the bundle of the installed package `plotly`, gzipped, in base64; the same bytes at any time."""
    script = importlib.resources.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()
    return base64.b64encode(gzip.compress(script, compresslevel=6, mtime=0)).decode()
