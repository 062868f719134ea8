"""Colours after Okabe and Ito (jfly.uni-koeln.de/color): told apart with any colour vision, by day and night."""

from __future__ import annotations

#: Name -> the colour on a light page, and on a dark one.
COLOURS = {
    "ink": ("#161a1f", "#e8eaed"),
    "quiet": ("#5d6670", "#9aa4af"),
    "faint": ("#d9dde2", "#343b43"),
    "hair": ("#eceef1", "#262c33"),
    "page": ("#fdfdfc", "#121519"),
    "panel": ("#f5f6f7", "#1a1f25"),
    "link": ("#0b61a4", "#7cc0f5"),
    "better": ("#00735a", "#3ecf9f"),
    "worse": ("#b84300", "#f58b4c"),
    "breaks": ("#8f3d7c", "#dd92c6"),
    "incomplete": ("#7d5d00", "#dcb13c"),
    "s0": ("#3b424a", "#c9cfd6"),  # the baseline's
    "s1": ("#0072b2", "#56b4e9"),
    "s2": ("#d55e00", "#f58b4c"),
    "s3": ("#009e73", "#3ecf9f"),
    "s4": ("#b5589a", "#dd92c6"),
    "s5": ("#b58400", "#e6b93a"),
    "s6": ("#3f51b5", "#9fa8f0"),
    "s7": ("#6b4f3a", "#c9a68a"),
    "s8": ("#8a939d", "#7d8792"),  # what does not stand out
    "w0": ("#a3a8ad", "#747b82"),  # the whiskers of the baseline, and of what stands out
    "w1": ("#82b9da", "#3a769c"),
}
LIGHT = {name: light for name, (light, _) in COLOURS.items()}

#: The colours of sets by their slots.
SLOTS = tuple(light for name, light in LIGHT.items() if name[0] == "s" and name[1:].isdigit())


def properties() -> str:
    """Return the colours as CSS, for `:root`; the page's theme chooses."""
    return "\n".join(f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in COLOURS.items())


def by_night() -> dict[str, str]:
    """Return each colour of a light page with its counterpart on a dark one."""
    return dict(COLOURS.values())
