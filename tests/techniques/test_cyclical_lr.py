import numpy as np
import pytest
import torch

from effbench.errors import InvalidTechnique
from effbench_techniques.optimization_centric.learning_rate.cyclical_lr import cyclical_lr
from schedule import ends_decayed, factors, progresses
from toy import vectors


@pytest.mark.parametrize(("mode", "shrink"), [("triangular", 1.0), ("triangular2", 0.5)])
def test_the_triangles_are_torchs(mode: str, shrink: float) -> None:
    schedule = cyclical_lr.apply(vectors(), {"cycles": 4, "low": 0.25, "shrink": shrink}).lr_schedule
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CyclicLR(
        optimizer, base_lr=0.25, max_lr=1.0, step_size_up=5, mode=mode, cycle_momentum=False
    )
    for step in range(40):
        assert schedule(step / 40) == pytest.approx(scheduler.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        scheduler.step()


def test_a_run_sees_the_triangles_and_ends_at_the_lower_bound() -> None:
    found = factors(cyclical_lr.apply(vectors(), {"cycles": 2, "low": 0.1}), 20)
    assert found == pytest.approx(
        np.interp(progresses(20), [0.0, 0.25, 0.5, 0.75, 1.0], [0.1, 1.0, 0.1, 1.0, 0.1]), abs=1e-9
    )


def test_the_last_rate_is_at_most_a_hundredth_of_the_peak() -> None:
    assert ends_decayed(lambda: cyclical_lr.apply(vectors(), {"cycles": 1, "low": 0.005}))


@pytest.mark.parametrize("options", [{"cycles": 0}, {"low": 0.0}, {"low": 1.0}, {"shrink": 0.0}, {"shrink": 1.1}])
def test_wrong_options_are_refused(options) -> None:
    name, value = next(iter(options.items()))
    with pytest.raises(InvalidTechnique, match=f"cyclical_lr: {name} is {value}"):
        cyclical_lr.apply(vectors(), options)
