"""Places for the names of points: beside them, over no other name, and as far as there is room over no other point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Box = tuple[float, float, float, float]  # left, top, right, bottom; y grows downwards
_Array = npt.NDArray[np.float64]

_REACHES = (9.0, 16.0, 26.0, 38.0, 52.0, 68.0, 86.0)  # from the point to its name
_DIRECTIONS = 16
_NEAR = 12.0  # a name as near as this needs no line to its point
_SAMPLES = 6  # places of such a line where it had better not meet a name
_CROSSED = 60.0  # what it costs if it does
_COVERED = 25.0  # what it costs to lie over a point, in units of reach
_LEVEL = 7.0  # what it costs to lie level with the point, where its interval may be drawn
_MARGIN = 1.5  # around names


@dataclass(frozen=True, slots=True)
class Label:
    """Where a name stands: its box, and the end of the line that leads from the point to it, if it needs one."""

    box: Box
    at_right: bool  # of its point: it begins there, else it ends there
    leader: tuple[float, float] | None


def place(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    obstacles: Sequence[tuple[float, float]],
    field: Box,
) -> list[Label | None]:
    """Return a place for the name of each point; None where there is no room for it.

    sizes: width and height of the names.
    obstacles: other points, which names had better not lie over.
    field: what names must lie inside of.
    """
    marks = np.array([*points, *obstacles], dtype=float).reshape(-1, 2)
    taken: list[Box] = []
    lines: list[_Array] = []
    found: list[Label | None] = [None] * len(points)
    for number in sorted(range(len(points)), key=lambda i: (points[i][1], points[i][0])):
        label = _best(points[number], sizes[number], marks, taken, lines, field)
        if label is not None:
            found[number] = label
            taken.append(label.box)
            if label.leader:
                lines.append(_between(points[number], np.array([label.leader]))[0])
    return found


def _best(
    point: tuple[float, float],
    size: tuple[float, float],
    marks: _Array,
    taken: Sequence[Box],
    lines: Sequence[_Array],
    field: Box,
) -> Label | None:
    boxes, ends, reaches = _candidates(point, size)
    fits = (boxes[:, 0] >= field[0]) & (boxes[:, 1] >= field[1])
    fits &= (boxes[:, 2] <= field[2]) & (boxes[:, 3] <= field[3])
    level = np.abs(ends[:, 1] - point[1]) < size[1] / 2
    costs = reaches + _LEVEL * level + _COVERED * _inside(boxes, marks, 3.0).sum(axis=1)
    if taken:
        others = np.array(taken)
        apart = (boxes[:, None, 0] > others[:, 2] + _MARGIN) | (boxes[:, None, 2] < others[:, 0] - _MARGIN)
        apart |= (boxes[:, None, 1] > others[:, 3] + _MARGIN) | (boxes[:, None, 3] < others[:, 1] - _MARGIN)
        fits &= apart.all(axis=1)
        along = _between(point, ends).reshape(-1, 2)
        costs += _CROSSED * _inside(others, along, 0.0).any(axis=0).reshape(len(ends), _SAMPLES).any(axis=1)
    if lines:
        costs += _CROSSED * _inside(boxes, np.concatenate(lines), 0.0).any(axis=1)
    if not fits.any():
        return None
    best = int(np.argmin(np.where(fits, costs, np.inf)))
    left, top, right, bottom = map(float, boxes[best])
    leader = (float(ends[best][0]), float(ends[best][1])) if reaches[best] > _NEAR else None
    return Label((left, top, right, bottom), (left + right) / 2 >= point[0], leader)


def _candidates(point: tuple[float, float], size: tuple[float, float]) -> tuple[_Array, _Array, _Array]:
    """Return boxes (C, 4), where a line from the point would end (C, 2), and how far away each is (C,)."""
    angles = np.arange(_DIRECTIONS) * 2.0 * math.pi / _DIRECTIONS - math.pi / 8  # up and to the right comes first
    reaches = np.repeat(_REACHES, _DIRECTIONS)
    across, down = np.tile(np.cos(angles), len(_REACHES)), np.tile(np.sin(angles), len(_REACHES))
    ends = np.stack([point[0] + reaches * across, point[1] + reaches * down], axis=1)
    left = np.where(across >= -1e-9, ends[:, 0], ends[:, 0] - size[0])
    top = ends[:, 1] - size[1] / 2
    return np.stack([left, top, left + size[0], top + size[1]], axis=1), ends, reaches


def _inside(boxes: _Array, places: _Array, around: float) -> npt.NDArray[np.bool_]:
    """Return which places lie in which boxes, or that near: (C, P)."""
    x, y = places[None, :, 0], places[None, :, 1]
    across = (x > boxes[:, None, 0] - around) & (x < boxes[:, None, 2] + around)
    return across & (y > boxes[:, None, 1] - around) & (y < boxes[:, None, 3] + around)


def _between(point: tuple[float, float], ends: _Array) -> _Array:
    """Return places along the lines from a point to ends (C, 2): (C, _SAMPLES, 2)."""
    shares = np.linspace(0.0, 1.0, _SAMPLES)[None, :, None]
    return np.asarray(point)[None, None] * (1.0 - shares) + ends[:, None] * shares
