"""The survey's tree: which branches and leaves there are, in the order in which techniques compose.

Source: On Efficient Training of Large-Scale Deep Learning Models: A Literature Review, arXiv:2304.03589.
"""

from __future__ import annotations

from effbench.errors import UnknownName

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
        raise UnknownName("leaf of the taxonomy", leaf, LEAVES)
    return leaf


def about(leaf: str) -> str:
    """Return what a leaf ("branch/leaf") is about."""
    branch, _, name = leaf.partition("/")
    return TAXONOMY[branch][name]


def branch_position(leaf: str) -> int:
    """Return the position of the leaf's branch in the order of composition, from 0."""
    return list(TAXONOMY).index(leaf.partition("/")[0])
