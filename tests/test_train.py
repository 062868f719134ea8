"""The loop: steps, rates, order, milestones, and what the budget pays for."""

from __future__ import annotations

import dataclasses
import itertools

import pytest
import torch
from torch import Tensor, nn

from effbench import terms
from effbench.budget import Budget
from effbench.clock import CpuClock, EpochClock, ExampleClock, Ledger, PricedClock, StepClock, TokenClock, WallClock
from effbench.distributed.data_parallel import share_batches
from effbench.distributed.group import Group
from effbench.distributed.launch import run_ranks
from effbench.distributed.sharing import share
from effbench.errors import InvalidTechnique, NotApplicable
from effbench.recipe import Batch, Examples, Milestone, Recipe, Training
from effbench.terms import IGNORED, warmup_then_linear
from effbench.toys import TOYS
from effbench.train import Lookahead, Positions, start, take_step, train

torch.set_num_threads(1)


def vectors(**changes: object) -> Recipe:
    return dataclasses.replace(TOYS["vectors"](), **changes)


def noting(recipe: Recipe, seen: list[Tensor]) -> Recipe:
    """Note the positions of every batch."""

    def loader(positions: Tensor, training: Training) -> Batch:
        seen.append(positions.clone())
        return recipe.loader(positions, training)

    return dataclasses.replace(recipe, loader=loader)


def run(recipe: Recipe, budget: str = "6 steps", clock=None, **how) -> Training:
    training = start(recipe, how.pop("seed", 0), **how)
    for _ in train(training, Budget.parse(budget), clock or StepClock()):
        pass
    return training


def rates(recipe: Recipe, budget: str, clock, **how) -> list[float]:
    """The learning rate of every step, as a share of the peak."""
    training = start(recipe, 0, **how)
    group = training.optimizer.param_groups[0]
    return [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse(budget), clock)]


def straight(progress: float) -> float:
    """A schedule that falls from the peak to nothing in a line."""
    return 1.0 - progress


def weights(training: Training) -> Tensor:
    return torch.cat([tensor.flatten().double() for tensor in training.model.state_dict().values()])


class Time:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def taking(recipe: Recipe, seconds, time: Time) -> Recipe:
    """Let the gradient of step k take seconds[k], the last one from there on."""

    def gradient(training: Training, batch: Batch) -> Tensor:
        time.seconds += seconds[min(training.step, len(seconds) - 1)]
        return recipe.gradient(training, batch)

    return dataclasses.replace(recipe, gradient=gradient)


def under_wall(recipe: Recipe, seconds, budget: str) -> tuple[Training, list[float]]:
    time = Time()
    training = start(taking(recipe, seconds, time), 0, ledger=Ledger(time, time))
    group = training.optimizer.param_groups[0]
    seen = [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse(budget), WallClock())]
    return training, seen


# --- how much is done ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "clock", "steps"),
    [
        ("6 steps", StepClock(), 6),
        ("1 step", StepClock(), 1),
        ("1.5 steps", StepClock(), 2),
        ("2 epochs", EpochClock(), 5),
        ("96 examples", ExampleClock(), 6),
        ("97 examples", ExampleClock(), 7),
        ("1000 tokens", TokenClock(), 6),
        ("6s reference", PricedClock(6, lambda progress: 0.1), 60),
    ],
)
def test_a_budget_buys_so_many_steps(budget, clock, steps):
    training = run(TOYS["text"](), budget, clock)
    assert training.step == steps
    assert training.examples == 16 * steps
    assert training.tokens == 16 * 12 * steps
    assert training.progress == 1.0


def test_seconds_end_with_the_step_in_which_they_run_out():
    training, _ = under_wall(vectors(), [0.5], "2.2s")
    assert training.step == 5
    assert training.ledger.spent_wall() == 2.5


def test_what_the_consumer_does_between_steps_is_not_paid_for():
    time = Time()
    training = start(taking(vectors(), [0.5], time), 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("2s"), WallClock()):
        time.seconds += 0.75  # a progress bar
        with training.ledger.line("evaluation"):
            time.seconds += 1.0
    assert training.step == 4
    assert training.ledger.wall == dict.fromkeys(training.ledger.wall, 0.0) | {
        "forward_backward": 2.0,
        "idle": 3.0,
        "evaluation": 4.0,
    }
    assert sum(training.ledger.wall.values()) == time()


def test_progress_only_rises_even_if_a_clock_goes_back():
    class Jumping:
        spoken = iter([0.0, 3.0, 1.0, 2.0, 4.0, -5.0, 10.0])

        def spent(self, training: Training) -> float:
            return next(self.spoken)

    training = start(vectors(), 0)
    seen = [training.progress for _ in train(training, Budget(10, "joules"), Jumping())]
    assert seen == [0.0, 0.3, 0.3, 0.3, 0.4, 0.4]
    assert training.progress == 1.0


def test_a_budget_of_tokens_is_refused_where_there_are_none():
    with pytest.raises(NotApplicable, match="budget of tokens"):
        run(vectors(), "100 tokens", TokenClock())


def test_a_spent_budget_buys_no_step():
    assert run(vectors(), "1s reference", PricedClock(1, lambda progress: 0.1, ((0.0, 2.0),))).step == 0


def test_stopping_in_the_middle_leaves_a_training_that_can_be_evaluated():
    training = start(vectors(), 0)
    steps = train(training, Budget(6, "steps"), StepClock())
    next(steps)
    next(steps)
    steps.close()
    assert training.step == 2
    assert training.recipe.eval_model(training) is training.model


# --- learning rates -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [10, 20, 40])
def test_the_rate_falls_to_nothing_inside_any_budget_of_steps(steps):
    seen = rates(vectors(), f"{steps} steps", StepClock())
    assert len(seen) == steps
    peak = seen.index(max(seen))
    assert seen[-1] <= 0.01 * max(seen)
    assert seen[peak:] == sorted(seen[peak:], reverse=True)
    assert seen[: peak + 1] == sorted(seen[: peak + 1])
    assert seen[0] > 0


@pytest.mark.parametrize(
    ("budget", "clock"),
    [
        ("3 epochs", EpochClock()),
        ("100 examples", ExampleClock()),
        ("2s reference", PricedClock(2, lambda progress: 0.1)),
        ("2s reference", PricedClock(2, lambda progress: 0.1 if progress < 0.5 else 0.05, ((0.5, 0.3), (1.0, 0.2)))),
    ],
)
def test_the_rate_falls_to_nothing_inside_any_counted_budget(budget, clock):
    seen = rates(vectors(lr_schedule=straight), budget, clock)
    assert seen[-1] <= 0.01
    assert seen == sorted(seen, reverse=True)
    assert seen[0] == 1.0


@pytest.mark.parametrize(
    "seconds",
    [
        [0.2],
        [0.07],
        [0.1, 0.11, 0.09] * 20,
        [1.2, 0.06],  # the first step compiles
        [0.06, 0.06, 0.06, 0.9, 0.06],  # a hiccup
    ],
)
def test_the_rate_falls_to_nothing_inside_seconds_however_long_the_steps_turn_out(seconds):
    _, seen = under_wall(vectors(), seconds, "3s")
    peak = seen.index(max(seen))
    assert seen[-1] <= 0.01 * max(seen)
    assert seen[peak:] == sorted(seen[peak:], reverse=True)


def test_a_slow_first_step_or_a_hiccup_moves_the_schedule_by_its_own_length_alone():
    _, seen = under_wall(vectors(lr_schedule=straight), [1.0, 0.1], "4s")
    assert seen[:4] == pytest.approx([1.0, 0.75, 0.7, 0.675])
    _, seen = under_wall(vectors(lr_schedule=straight), [0.1, 0.1, 1.0, 0.1], "4s")
    assert seen[:5] == pytest.approx([1.0, 0.975, 0.925, 0.675, 0.65])


def test_a_step_has_the_rate_of_its_end():
    seen = rates(vectors(lr_schedule=straight), "10 steps", StepClock())
    assert seen == pytest.approx([1.0, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0])


def test_the_lookahead_never_tells_less_than_before():
    ahead = Lookahead(steady=False)
    told = [ahead.of(progress) for progress in (0.0, 0.3, 0.32, 0.34, 0.34, 0.9, 0.91)]
    assert told == pytest.approx([0.0, 0.3, 0.34, 0.36, 0.36, 0.9, 0.92])


def test_each_group_keeps_its_own_peak():
    recipe = vectors()
    training = start(recipe, 0)
    training.optimizer.param_groups[1]["initial_lr"] = 1.0
    for _ in train(training, Budget(4, "steps"), StepClock()):
        first, second = (group["lr"] for group in training.optimizer.param_groups)
        assert first == pytest.approx(0.01 * second)


@pytest.mark.parametrize("warmup", [0.0, 0.1, 0.5])
def test_warm_up_then_linear_decay(warmup):
    factor = warmup_then_linear(warmup)
    assert factor(warmup) == pytest.approx(1.0)
    assert factor(1.0) == 0.0
    assert 0.0 < factor(0.0) <= 1.0
    assert factor((1 + warmup) / 2) == pytest.approx(0.5)


# --- examples and their order -------------------------------------------------------------------------------------


def test_three_epochs_have_three_orders_and_each_covers_all():
    seen: list[Tensor] = []
    run(noting(vectors(), seen), "120 examples", ExampleClock())
    epochs = torch.cat(seen)[:120].view(3, 40)
    assert all(epoch.sort().values.equal(torch.arange(40)) for epoch in epochs)
    assert all(not one.equal(other) for one, other in itertools.combinations(epochs, 2))


def test_the_seed_fixes_the_order_and_the_weights():
    runs = {}
    for name, seed in (("first", 1), ("again", 1), ("other", 2)):
        seen: list[Tensor] = []
        runs[name] = (weights(run(noting(vectors(), seen), seed=seed)), torch.cat(seen))
    assert runs["first"][0].equal(runs["again"][0])
    assert runs["first"][1].equal(runs["again"][1])
    assert not runs["first"][0].equal(runs["other"][0])
    assert not runs["first"][1].equal(runs["other"][1])


def test_the_order_is_the_same_on_all_ranks_and_the_dropout_is_not():
    def body(group: Group):
        seen: list[Tensor] = []
        training = run(noting(vectors(), seen), "9 steps", group=group)
        order = torch.cat(seen)
        masks = torch.rand(8)  # dropout draws from the same stream
        orders, streams = ([torch.empty_like(mine) for _ in range(2)] for mine in (order, masks))
        torch.distributed.all_gather(orders, order)
        torch.distributed.all_gather(streams, masks)
        return orders, streams, training.examples

    orders, streams, examples = run_ranks(2, body)
    assert orders[0].equal(orders[1])
    assert not streams[0].equal(streams[1])
    assert examples == 9 * 16


# --- ranks in step, and out of it ---------------------------------------------------------------------------------


class Watch:
    """A second a step on rank 0, two on the other; counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def spent(self, training: Training) -> float:
        self.looks += 1
        return training.step * (1.0 + training.group.rank)


def in_two_ranks(recipe: Recipe, budget: str, watch) -> list[tuple[int, list[float], int, dict[str, int]]]:
    """Steps, progress after each, looks at the clock, and calls of collectives, of each rank."""

    def body(group: Group):
        clock = watch()
        training = start(recipe, 0, group=group)
        before = group.wire.traffic.so_far()
        seen = [training.progress for _ in train(training, Budget.parse(budget), clock)]
        calls = {name: sent.calls for name, sent in group.wire.traffic.since(before).items()}
        everyone: list[object] = [None] * group.size
        torch.distributed.all_gather_object(everyone, (training.step, seen, getattr(clock, "looks", 0), calls))
        return everyone

    return run_ranks(2, body)


def test_what_is_counted_needs_no_word_between_ranks():
    one, other = in_two_ranks(share_batches(vectors(), 2), "9 steps", StepClock)
    assert one == other == (9, [step / 9 for step in range(9)], 0, {})


def test_what_is_measured_is_the_word_of_rank_0_and_seldom_asked_for():
    one, other = in_two_ranks(share_batches(vectors(), 2), "200s", Watch)
    assert one == other
    steps, progress, looks, calls = one
    assert steps == 200
    assert progress == pytest.approx([step / 200 for step in range(200)])
    assert looks < 80
    assert calls == {"broadcast": looks}


def test_steps_that_differ_end_no_later_than_one_of_them() -> None:
    """Every fiftieth step lasts as long as a hundred others, as where ranks seldom send something."""

    class Uneven(Watch):
        def spent(self, training: Training) -> float:
            self.looks += 1
            return training.step + 100.0 * (training.step // 50)

    one, other = in_two_ranks(share_batches(vectors(), 2), "310s", Uneven)
    assert one == other
    steps, progress, looks, _ = one
    assert 310 <= steps + 100 * (steps // 50) <= 310 + 101
    assert progress == sorted(progress)
    assert looks < steps


def test_a_rank_out_of_step_goes_by_its_own_clock_and_asks_nobody():
    recipe = share_batches(vectors(), 2).swap(in_step=False)
    one, other = in_two_ranks(recipe, "20s", Watch)
    assert one == (20, [step / 20 for step in range(20)], 21, {})
    assert other == (10, [step / 10 for step in range(10)], 11, {})


def test_a_milestone_is_looked_at_as_long_as_it_takes():
    class Slow(Watch):
        def spent(self, training: Training) -> float:
            return super().spent(training) + training.kept.get("seconds", 0.0)

    def work(training: Training) -> None:
        training.kept["seconds"] = 50.0 * (1 - training.group.rank)

    one, other = in_two_ranks(share_batches(vectors(), 2).at(0.5, work), "200s", Slow)
    assert one == other
    assert one[0] == 150
    assert min(progress for progress in one[1] if progress > 0.55) == pytest.approx(0.75, abs=0.01)  # seen at once


def test_cpu_seconds_are_divided_among_ranks_out_of_step():
    def body(group: Group) -> tuple[float, float]:
        ledger = Ledger(cpu=iter([0.0, 0.0, 0.0, 3.0 + group.rank, 9.0]).__next__)
        training = start(vectors(), 0, group=group.apart(), ledger=ledger)
        CpuClock().spent(training)
        ledger.switch("data")
        return CpuClock().spent(training), training.group.together().sum_float(1.0)

    assert run_ranks(2, body) == (6.0, 2.0)


def test_finishing_is_done_once_at_the_end_and_on_the_clock():
    done: list[tuple[int, float]] = []
    time = Time()

    def finish(training: Training) -> None:
        done.append((training.step, training.progress))
        time.seconds += 5.0

    recipe = dataclasses.replace(taking(vectors(), [1.0], time), finish=finish)
    training = start(recipe, 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("3s"), WallClock()):
        pass
    assert done == [(3, 1.0)]
    assert training.ledger.wall["extra"] == 5.0
    assert training.ledger.spent_wall() == 8.0


def test_masks_of_other_batches_leave_the_order_as_it_is():
    orders = []
    for size in (16, 5):
        seen: list[Tensor] = []
        recipe = dataclasses.replace(TOYS["masked_text"](), batch_size=lambda progress, size=size: size)
        run(noting(recipe, seen), "120 examples", ExampleClock())
        orders.append(torch.cat(seen)[:120])
    assert orders[0].equal(orders[1])


@pytest.mark.parametrize(("examples", "batch"), [(40, 3), (13, 4), (7, 6), (3, 16), (41, 40)])
def test_no_batch_is_a_remainder(examples, batch):
    """With BatchNorm a batch of one example raises: 40 examples in batches of 3 would leave one over."""
    full = vectors()
    dataset = Examples(full.dataset.inputs[:1].repeat(examples, 1), torch.zeros(examples, dtype=torch.long))
    seen: list[Tensor] = []
    recipe = vectors(dataset=dataset, batch_size=lambda progress: batch)
    run(noting(recipe, seen), "2 epochs", EpochClock())
    assert {len(positions) for positions in seen} == {batch}
    drawn = torch.cat(seen)
    assert all(drawn[i : i + examples].unique().numel() == examples for i in range(0, len(drawn) - examples, examples))


def test_a_batch_size_may_change_with_progress():
    seen: list[Tensor] = []
    recipe = vectors(batch_size=lambda progress: 4 if progress < 0.5 else 8)
    training = run(noting(recipe, seen))
    assert [len(positions) for positions in seen] == [4, 4, 4, 8, 8, 8]
    assert training.examples == 36


@pytest.mark.parametrize("size", [0, -1])
def test_an_empty_batch_is_refused(size):
    with pytest.raises(InvalidTechnique, match=f"the batch size is {size}"):
        run(vectors(batch_size=lambda progress: size), "10 examples", ExampleClock())


def test_a_sampler_that_ends_is_refused():
    with pytest.raises(InvalidTechnique, match="the sampler came to an end"):
        run(vectors(sampler=lambda training: iter([torch.arange(20)])))


def test_a_sampler_without_examples_is_refused_and_does_not_hang():
    empty = Examples(torch.zeros(0, 8), torch.zeros(0, dtype=torch.long))
    with pytest.raises(InvalidTechnique, match="a chunk without positions"):
        run(vectors(dataset=empty))


def test_positions_run_across_chunks():
    positions = Positions(iter([torch.arange(5), torch.arange(5, 8), torch.arange(8, 20)]))
    assert [positions.take(count).tolist() for count in (3, 4, 1, 7)] == [
        [0, 1, 2],
        [3, 4, 5, 6],
        [7],
        [8, 9, 10, 11, 12, 13, 14],
    ]


# --- weights of examples ------------------------------------------------------------------------------------------


def token_batch() -> Batch:
    """Two texts: one token with the loss 4, three tokens with the loss 0."""
    targets = torch.tensor([[0, IGNORED, IGNORED], [1, 1, 1]])
    return Batch(torch.zeros(2, 3), targets, torch.arange(2), terms.valid_targets(targets))


def test_the_loss_of_a_step_is_the_mean_over_tokens_and_not_of_means():
    batch = share(token_batch(), start(vectors(), 0))
    assert batch.weight.tolist() == [0.25, 0.75]
    losses = torch.tensor([4.0, 0.0])
    assert (losses * batch.weight).sum() == 1.0
    assert sum(float((losses[i : i + 1] * batch[i : i + 1].weight).sum()) for i in range(2)) == 1.0


def test_a_step_without_any_valid_target_divides_by_nothing():
    batch = token_batch().replace(weight=torch.zeros(2))
    assert share(batch, start(vectors(), 0)).weight.tolist() == [0.0, 0.0]


def test_weights_sum_to_one_over_all_ranks():
    def body(group: Group) -> float:
        batch = share(token_batch()[group.rank : group.rank + 1], start(vectors(), 0, group=group))
        return float(batch.weight.sum())

    assert run_ranks(2, body) == 0.25


def accumulating(recipe: Recipe, parts: int) -> Recipe:
    def gradient(training: Training, batch: Batch) -> Tensor:
        size = len(batch) // parts
        return torch.cat([recipe.gradient(training, batch[i : i + size]) for i in range(0, len(batch), size)])

    return dataclasses.replace(recipe, gradient=gradient)


def test_accumulation_gives_the_gradient_of_the_whole_batch_and_changes_no_count_and_no_rate():
    whole, parts = (start(recipe, 0) for recipe in (TOYS["text"](), accumulating(TOYS["text"](), 4)))
    seen = []
    for training in (whole, parts):
        group = training.optimizer.param_groups[0]
        steps = train(training, Budget(10, "steps"), StepClock())
        seen.append([(group["lr"], training.examples, training.tokens) for _ in steps])
    assert seen[0] == seen[1]
    assert len(seen[0]) == 10
    assert (parts.examples, parts.tokens) == (10 * 16, 10 * 16 * 12)
    assert parts.losses.shape == (16,)
    torch.testing.assert_close(weights(whole), weights(parts), rtol=0, atol=1e-6)


def test_the_token_loss_of_an_example_is_the_mean_over_its_valid_targets():
    logits = torch.zeros(2, 3, 4)
    logits[0, 0, 0] = 1.0
    losses = terms.cross_entropy(logits, token_batch())
    first = torch.nn.functional.cross_entropy(logits[0, :1], torch.tensor([0]))
    assert losses.tolist() == pytest.approx([float(first), float(torch.tensor(4.0).log())])


def test_targets_may_be_class_probabilities():
    logits = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    hard, soft = torch.tensor([0, 1]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    batches = [Batch(logits, targets, torch.arange(2), terms.valid_targets(targets)) for targets in (hard, soft)]
    torch.testing.assert_close(*(terms.cross_entropy(logits, batch) for batch in batches))
    assert batches[1].weight.tolist() == [1.0, 1.0]


# --- milestones ---------------------------------------------------------------------------------------------------


def test_milestones_come_once_in_order_before_the_first_step_at_or_after_them():
    done: list[tuple[str, int, float]] = []

    def note(name: str):
        return lambda training: done.append((name, training.step, training.progress))

    marks = [("late", 0.9), ("c", 0.5), ("a", 0.0), ("d", 0.5), ("b", 0.3), ("never", 1.0)]
    milestones = tuple(Milestone(progress, note(name)) for name, progress in marks)
    run(vectors(milestones=milestones), "10 steps")
    assert done == [("a", 0, 0.0), ("b", 3, 0.3), ("c", 5, 0.5), ("d", 5, 0.5), ("late", 9, 0.9)]


def test_milestones_are_paid_for_and_may_use_the_budget_up():
    time = Time()

    def work(training: Training) -> None:
        time.seconds += 1.5

    recipe = taking(vectors(milestones=(Milestone(0.5, work),)), [0.25], time)
    training = start(recipe, 0, ledger=Ledger(time, time))
    for _ in train(training, Budget.parse("2s"), WallClock()):
        pass
    assert training.step == 4
    assert training.ledger.wall["extra"] == 1.5
    assert training.progress == 1.0


def test_the_time_of_a_milestone_moves_the_rate_of_the_next_step():
    time = Time()

    def work(training: Training) -> None:
        time.seconds += 1.0

    recipe = taking(vectors(milestones=(Milestone(0.5, work),), lr_schedule=straight), [0.25], time)
    training = start(recipe, 0, ledger=Ledger(time, time))
    group = training.optimizer.param_groups[0]
    seen = [group["lr"] / group["initial_lr"] for _ in train(training, Budget.parse("4s"), WallClock())]
    assert seen[8] == pytest.approx(1.0 - 3.25 / 4)


# --- what a step does ---------------------------------------------------------------------------------------------


def test_a_step_is_the_textbooks():
    recipe = vectors(
        model=lambda: nn.Linear(8, 3),
        optimizer=lambda model: torch.optim.SGD(model.parameters(), lr=0.5),
        lr_schedule=lambda progress: 0.5,
        update=terms.step,
    )
    seen: list[Tensor] = []
    training = run(noting(recipe, seen), "3 steps")
    torch.manual_seed(0)
    twin = start(recipe, 0).model
    for positions in seen:
        inputs, targets = recipe.dataset.inputs[positions], recipe.dataset.targets[positions]
        loss = torch.nn.functional.cross_entropy(twin(inputs), targets)
        gradients = torch.autograd.grad(loss, list(twin.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(twin.parameters(), gradients, strict=True):
                parameter -= 0.25 * gradient
    for one, other in zip(training.model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)
        assert one.grad is None


def test_a_step_outside_the_loop_counts_as_one():
    training = start(vectors(), 0)
    take_step(training, Positions(training.recipe.sampler(training)))
    assert (training.step, training.examples, training.tokens) == (1, 16, 0)
    assert training.losses.shape == (16,)
    assert not training.losses.requires_grad


def test_techniques_draw_from_a_stream_that_shifts_neither_order_nor_dropout():
    def run_drawing(count: int) -> Tensor:
        recipe = vectors()

        def transform(batch: Batch, training: Training) -> Batch:
            torch.rand(count, generator=training.rng)
            return recipe.transform(batch, training)

        return weights(run(dataclasses.replace(recipe, transform=transform)))

    assert run_drawing(1).equal(run_drawing(1000))


def test_placing_and_building_may_draw_random_numbers_without_moving_the_initial_weights():

    plain, drawn = (
        start(vectors(placement=placement), 0)
        for placement in (terms.as_it_is, lambda model: (torch.rand(5), model)[1])
    )
    assert weights(plain).equal(weights(drawn))
