"""The survey's tree: which branches and leaves there are, in the order in which techniques compose.

Source: On Efficient Training of Large-Scale Deep Learning Models: A Literature Review, arXiv:2304.03589.
"""

from __future__ import annotations

from typing import NoReturn

from effbench.errors import UnknownName, nearest

#: branch -> leaf -> what the leaf is about. Techniques compose in the order of the branches: hardware goes
#: around everything, so the system comes last.
TAXONOMY: dict[str, dict[str, str]] = {
    "data_centric": {
        "regularization": "augment the examples",
        "sampling": "choose which examples to train on",
        "curriculum": "choose in which order, length or resolution",
    },
    "model_centric": {
        "architecture": "a cheaper or better network",
        "compression": "quantization, sparsity and low rank while training",
        "initialization": "start from better weights",
        "curriculum": "train a smaller or partial network first",
    },
    "optimization_centric": {
        "learning_rate": "optimizers and schedules",
        "large_batch": "batch size, and what makes it work",
        "objective": "what is minimised",
        "averaged_weights": "evaluate or continue from an average",
    },
    "budgeted_training": {
        "training": "recipes that know how much budget is left",
    },
    "system_centric": {
        "data": "feed the model",
        "model": "parallelism and memory",
        "optimization": "execute, fuse and communicate the step",
        "frameworks": "what others' training frameworks do",
    },
}

LEAVES: tuple[str, ...] = tuple(f"{branch}/{leaf}" for branch, leaves in TAXONOMY.items() for leaf in leaves)


def check_leaf(leaf: str) -> str:
    """Return `leaf` ("branch/leaf") as it is, or raise UnknownName."""
    if leaf not in LEAVES:
        _refuse(leaf)
    return leaf


def _refuse(leaf: str) -> NoReturn:
    """Raise UnknownName; where the last part is, or nearly is, the name of a leaf, say how to write it in full."""
    name = leaf.rpartition("/")[2]
    last = {place.partition("/")[2] for place in LEAVES}
    wanted = name if name in last else nearest(name, last)
    full = [place for place in LEAVES if place.partition("/")[2] == wanted]
    if not full or (name not in last and nearest(leaf, LEAVES)):
        raise UnknownName("leaf of the taxonomy", leaf, LEAVES)
    raise UnknownName("leaf of the taxonomy", leaf, full)


def about(leaf: str) -> str:
    """Return what a leaf ("branch/leaf") is about."""
    branch, _, name = leaf.partition("/")
    return TAXONOMY[branch][name]


def branch_position(leaf: str) -> int:
    """Return the position of the leaf's branch in the order of composition, from 0."""
    return list(TAXONOMY).index(leaf.partition("/")[0])
