"""Expert parallelism: each process has some of the experts of a mixture, and tokens travel to them."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from effbench import Batch, Recipe, Training, technique
from effbench.distributed.axes import Axis, grid, sum_gradients
from effbench.distributed.data_parallel import check_processes, deal_batches, refuse
from effbench.distributed.scopes import refuse_beyond
from effbench.distributed.spread_experts import layers_of, owners_of, spread
from effbench.errors import Conflict
from effbench_techniques.model_centric.architecture.moe_switch import moe_switch
from effbench_techniques.system_centric.model.tensor_parallel import draw_alike

_ASIDE = "it asks about the whole batch in every process, and tokens queue for experts as if each process had a share"
_UNSUMMED = "it uses gradients before those of all processes are added up"


@technique(
    "system_centric/model",
    paper="Lepikhin et al., GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding, "
    "arXiv:2006.16668",
    claim="a translation model of 600 billion parameters, trained in 4 days on 2,048 TPU v3",
    neutral={"processes": 1},
    conflicts={
        "importance_sampling": _ASIDE,
        "rho_loss": _ASIDE,
        "selective_backprop": _ASIDE,
        "sam": _UNSUMMED,
        "sophia": _UNSUMMED,
        "rigl": "it draws random numbers for each layer, and each process has other layers",
        "torch_compile": "how many tokens travel depends on the data, and the graph would break there",
    },
    title="Expert parallelism",
    unequal="a model without experts gets some",
)
def expert_parallel(recipe: Recipe, *, processes: int = 2) -> Recipe:
    """Deal out the experts of a mixture to several processes, and send tokens to where their experts are.

    Each process takes its share of every batch, and has all of the model but the experts, of which it has some. Who is
    asked about which token is decided as in one process, over the tokens of all: so capacity and balance are those of
    the whole batch, only tokens that find room are sent, and the weights are those of one process, but for rounding.
    Tokens travel to their experts and back, in all-to-all exchanges, and their slopes once more; the gradients of what
    all processes have are added up at the end of a step. Dropout draws other masks in each process. The model that is
    evaluated is put together on rank 0.

    It goes with moe_switch, moe_gshard_top2, or a model that has experts; another one gets those of moe_switch.

    When it helps: more experts than fit on one device, and a network as fast as they compute.
    When it does not: few small experts; experts that are used unlike, for then some processes wait for others.

    processes: number of processes, at most as many as there are experts; 1 turns it off.
    """
    check_processes("expert_parallel", processes)
    if processes == 1:
        return recipe
    refuse(recipe, "milestones", "expert_parallel deals out the experts for good, and {others} may replace them")
    refuse_beyond(recipe, "tensor", "expert_parallel leaves each process some experts, and {others} may look at others")
    recipe = with_experts(recipe, processes)

    def place(model: nn.Module) -> nn.Module:
        placed = recipe.placement(model)
        axis = grid({"experts": processes})["experts"]
        spread(model, axis, "expert_parallel")
        draw_alike(axis)
        return InShares(placed, model, axis)

    def gradient(training: Training, batch: Batch) -> Tensor:
        losses = recipe.gradient(training, batch)
        shares = in_shares(training)
        sum_gradients((p for p in training.model.parameters() if p not in shares.own), shares.axis)
        return losses

    def collected(training: Training) -> nn.Module:
        return put_together(training, recipe.eval_model(training), in_shares(training).axis)

    return deal_batches(recipe, processes, processes).wrap(placement=place, gradient=gradient, eval_model=collected)


def with_experts(recipe: Recipe, processes: int) -> Recipe:
    """Return a recipe whose model has experts, as it is or with those of moe_switch.

    Raises:
        NotApplicable: there is nowhere to put them, or there are too few.
    """
    with torch.random.fork_rng(devices=[]):
        model = recipe.model()
    if not layers_of(model):
        return with_experts(moe_switch.function(recipe), processes)
    for layer in layers_of(model).values():
        owners_of(layer, processes, "expert_parallel")
    return recipe


class InShares(nn.Module):
    """A model of which each process has all but the experts, and some of these.

    own: the parameters of the experts that are here, and nowhere else.
    """

    def __init__(self, placed: nn.Module, model: nn.Module, axis: Axis) -> None:
        super().__init__()
        self.placed, self.axis = placed, axis
        lists = (experts for layer in layers_of(model).values() for experts in (layer.first, layer.last))
        self.own = {parameter for experts in lists for parameter in experts.parameters()}

    def copies(self, parameter: nn.Parameter) -> int:
        """Return on how many ranks a parameter lies."""
        return 1 if parameter in self.own else self.axis.size

    def forward(self, inputs: Tensor) -> Any:
        """Return the model's outputs for this process's share of a batch; all processes must take part."""
        return self.placed(inputs)


def in_shares(training: Training) -> InShares:
    """Return what this process has.

    Raises:
        Conflict: another technique has put something around it.
    """
    if not isinstance(training.forward, InShares):
        raise Conflict("expert_parallel says who has what, and another technique placed the model after that")
    return training.forward


def put_together(training: Training, part: nn.Module, axis: Axis) -> nn.Module:
    """Return the whole model on rank 0, plain and new; elsewhere `part`."""
    state: dict[str, Tensor] = dict(part.state_dict())
    if axis.place:
        for name in names_of(part, axis.place, axis.size):
            dist.send(state[name].contiguous(), axis.ranks[0])
        return part
    with torch.random.fork_rng(devices=[]):
        whole = training.recipe.model().to(next(iter(state.values())).device)
    forms = whole.state_dict()
    for place in range(1, axis.size):
        for name in names_of(whole, place, axis.size):
            state[name] = torch.empty_like(forms[name], memory_format=torch.contiguous_format)
            dist.recv(state[name], axis.ranks[place])
    whole.load_state_dict(state)
    return whole.train(part.training)


def names_of(model: nn.Module, place: int, processes: int) -> list[str]:
    """Return the names of the weights and buffers of the experts that process number `place` has."""
    names = []
    for layer_name, layer in layers_of(model).items():
        for expert, owner in enumerate(owners_of(layer, processes, "expert_parallel")):
            if owner == place:
                prefixes = [f"{layer_name}.{part}.{expert}." for part in ("first", "last")]
                names += [name for name in model.state_dict() if name.startswith(tuple(prefixes))]
    return names
