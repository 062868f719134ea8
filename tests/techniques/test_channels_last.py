import pytest
import torch

from effbench.errors import NotApplicable
from effbench.optimizers import sgd
from effbench.techniques import compose
from effbench_techniques.optimization_centric.averaged_weights.ema import ema
from effbench_techniques.system_centric.optimization.channels_last import channels_last
from toy import begun, flat, images, run, tokens, vectors


def innermost(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous(memory_format=torch.channels_last) and not tensor.is_contiguous()


def test_features_take_the_order_of_the_weights_from_end_to_end() -> None:
    training = begun(channels_last.apply(images(), {}))
    features = []
    for block in training.model.blocks:
        block.register_forward_hook(lambda module, inputs, output: features.append(output))
    training.forward(training.recipe.dataset.inputs)
    assert len(features) == 3
    assert all(innermost(each) for each in features)
    assert all(innermost(block.first.weight) for block in training.model.blocks)


def test_outputs_and_weights_are_the_baselines_but_for_rounding() -> None:
    plain = images(optimizer=sgd(0.05, 0.9, 0.0))
    ours, theirs = begun(channels_last.apply(plain, {})), begun(plain)
    inputs = plain.dataset.inputs
    torch.testing.assert_close(ours.forward(inputs), theirs.forward(inputs), rtol=0, atol=1e-5)
    last = run(channels_last.apply(plain, {}), 10).model
    torch.testing.assert_close(flat(last), flat(run(plain, 10).model), rtol=0, atol=1e-4)
    assert all(innermost(block.first.weight) for block in last.blocks)


def test_what_is_evaluated_holds_the_same_weights() -> None:
    known = {t.name: t for t in (channels_last, ema)}
    plain = images(optimizer=sgd(0.05, 0.9, 0.0))
    ours = run(compose(plain, {"channels_last": {}, "ema": {"half_life": 0.5}}, known)[0])
    theirs = run(compose(plain, {"ema": {"half_life": 0.5}}, known)[0])
    assert innermost(ours.model.blocks[0].first.weight)
    average, expected = (training.recipe.eval_model(training) for training in (ours, theirs))
    torch.testing.assert_close(flat(average), flat(expected), rtol=0, atol=1e-4)
    assert float((flat(average) - flat(ours.model)).abs().max()) > 1e-3
    average.eval(), expected.eval()
    inputs = plain.dataset.inputs
    torch.testing.assert_close(average(inputs), expected(inputs), rtol=0, atol=1e-3)


@pytest.mark.parametrize("make", [vectors, tokens])
def test_models_without_images_are_refused(make) -> None:
    with pytest.raises(NotApplicable, match="this model has none"):
        channels_last.apply(make(), {})
