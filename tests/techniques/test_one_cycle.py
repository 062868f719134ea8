import numpy as np
import pytest
import torch

from effbench.errors import InvalidTechnique, NotApplicable
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.optimization_centric.learning_rate.muon import muon
from effbench_techniques.optimization_centric.learning_rate.one_cycle import one_cycle
from schedule import PEAK, ends_decayed, factors, progresses
from toy import run, vectors


def test_the_rate_is_one_triangle_that_ends_where_torchs_does() -> None:
    found = factors(one_cycle.apply(vectors(), {}), 20)
    assert found == pytest.approx(np.interp(progresses(20), [0.0, 0.3, 1.0], [0.08, 2.0, 2.0 / (25 * 1e4)]), abs=1e-12)
    assert found.index(max(found)) == 5  # the step that ends at 0.3
    torchs = torch.optim.lr_scheduler.OneCycleLR
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    scheduler = torchs(optimizer, max_lr=2.0, total_steps=11, anneal_strategy="linear")
    assert found[0] == pytest.approx(scheduler.get_last_lr()[0])
    for _ in range(10):
        optimizer.step()
        scheduler.step()
    assert found[-1] == pytest.approx(scheduler.get_last_lr()[0])


def test_momentum_mirrors_the_rate_at_every_step() -> None:
    seen = []

    def look(training) -> None:
        group = training.optimizer.param_groups[0]
        seen.append((group["lr"] / (2.0 * PEAK), group["betas"]))

    run(one_cycle.apply(vectors(), {}), 20, look=look)
    for rate, (beta1, beta2) in seen:
        assert beta1 == pytest.approx(0.95 - 0.1 * rate, abs=1e-12)
        assert beta2 == 0.999
    assert min(beta1 for _, (beta1, _) in seen) == pytest.approx(0.85)


def test_it_cycles_the_momentum_of_sgd_and_of_several_optimizers() -> None:
    plain = run(one_cycle.apply(vectors(optimizer=sgd(0.1, 0.9, 0.0)), {}), 10)
    assert plain.optimizer.param_groups[0]["momentum"] == pytest.approx(0.95, abs=1e-5)  # the last rate is almost 0
    known = {technique.name: technique for technique in (muon, one_cycle)}
    both = run(compose(vectors(), {"muon": {}, "one_cycle": {}}, known)[0], 10)
    momenta = [group.get("momentum", group.get("betas", (0,))[0]) for group in both.optimizer.param_groups]
    assert momenta == pytest.approx([0.95] * len(momenta), abs=1e-5)


def test_equal_momenta_turn_the_cycle_off() -> None:
    training = run(one_cycle.apply(vectors(), {"momentum_low": 0.9, "momentum_high": 0.9}), 6)
    assert training.optimizer.param_groups[0]["betas"] == (0.9, 0.999)


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: one_cycle.apply(vectors(), {}))


def test_it_needs_an_optimizer_with_momentum() -> None:
    recipe = vectors(optimizer=lambda model: torch.optim.Adagrad(model.parameters(), lr=PEAK))
    with pytest.raises(NotApplicable, match="Adagrad has none"):
        run(one_cycle.apply(recipe, {}))


@pytest.mark.parametrize(
    "options",
    [
        {"peak": 0.0},
        {"peak": float("inf")},
        {"rise": 0.0},
        {"rise": 1.0},
        {"start": -0.1},
        {"end": 1.1},
        {"momentum_low": 0.96},
        {"momentum_high": 1.0},
    ],
)
def test_it_refuses_what_is_no_cycle(options: dict[str, float]) -> None:
    with pytest.raises(InvalidTechnique, match=f"one_cycle: .*{next(iter(options.values()))}"):
        one_cycle.apply(vectors(), options)
