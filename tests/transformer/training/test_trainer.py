from __future__ import annotations

import math

import pytest
import torch

from icl_estimators.sources import sample_batch
from icl_estimators.transformer import ModelConfig, Transformer, fold, folded_logits, folded_loss
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.updates import advance
from icl_estimators.validation import InputError

SMALL = ModelConfig(length=12, d_model=8)


def small(steps: int = 20, **changed) -> Recipe:
    return Recipe(**{"steps": steps, "batch": 8, "length": 12, **changed})


@pytest.mark.slow
def test_updates_are_adam_on_the_plain_model():
    """The trainer against the plain module, torch's own Adam and the cosine, on the addressed batches."""
    recipe = small(steps=30)
    trainer = Trainer(SMALL, recipe, seed=4)
    advance([trainer], 30)
    model = Transformer(SMALL, seed=4)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.peak_lr)
    for step in range(30):
        for group in optimizer.param_groups:
            group["lr"] = 0.5 * 3e-3 * (1 + math.cos(math.pi * step / 30))
        sample = sample_batch(step, batch=8, length=12, seed=4)
        logits = model(torch.from_numpy(sample.inputs))
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(sample.targets).flatten()).backward()
        optimizer.step()
    for name, parameter in model.named_parameters():
        assert torch.allclose(trainer.parameters()[name], parameter, atol=2e-5)


@pytest.mark.parametrize("config", [SMALL, ModelConfig(length=12, d_model=8, n_heads=2, n_layers=3, sentinel=True)])
def test_going_on_from_a_state_is_bitwise_the_same(config):
    recipe = small()
    whole = Trainer(config, recipe, seed=1)
    advance([whole], 20)
    state = None
    for stop in (3, 4, 11, 20):
        part = Trainer(config, recipe, seed=1, state=state)
        advance([part], stop)
        state = part.state()
    assert state is not None
    for field in ("weights", "first_moment", "second_moment", "loss_sum"):
        assert torch.equal(getattr(state, field), getattr(whole.state(), field))


def test_the_state_is_a_copy():
    trainer = Trainer(SMALL, small())
    advance([trainer], 2)
    state, parameters = trainer.state(), trainer.parameters()["embedding"].clone()
    advance([trainer], 4)
    assert torch.equal(state.weights[: parameters.numel()], parameters.flatten())


def test_seeds_differ_in_weights_and_chains():
    one, other = Trainer(SMALL, small(), seed=0), Trainer(SMALL, small(), seed=1)
    assert not torch.equal(one.state().weights, other.state().weights)
    assert not torch.equal(one.batch(0), other.batch(0))
    assert not torch.equal(one.batch(0), one.batch(1))


def test_steps_are_not_overrun_and_can_be_stopped():
    trainer = Trainer(SMALL, small(steps=5))
    advance([trainer], 50)
    assert trainer.step == 5
    trainer = Trainer(SMALL, small())
    advance([trainer], 20, should_stop=lambda: trainer.step >= 7)
    assert trainer.step == 7


def test_rows():
    trainer = Trainer(SMALL, small(steps=200, batch=4))
    first = trainer.row()
    assert first.step == 0
    assert math.isnan(first.loss_nats)
    assert math.isnan(first.tokens_per_second)
    assert first.learning_rate == 3e-3
    before = trainer.state().weights
    advance([trainer], 1)
    second = trainer.row()
    names = trainer.config.parameter_shapes
    assert second.tokens_per_second > 0
    pieces = before.split([math.prod(shape) for shape in names.values()])
    weights = {name: piece.view(shape) for (name, shape), piece in zip(names.items(), pieces, strict=True)}
    assert second.loss_nats == pytest.approx(float(folded_loss(fold(weights), trainer.batch(0))), rel=1e-6)
    assert second.learning_rate == trainer.recipe.learning_rate(0)


def test_the_loss_of_a_row_survives_a_stop():
    recipe = small(steps=8)  # rows at 0, 1, …, 6, 8
    whole = Trainer(SMALL, recipe)
    half = Trainer(SMALL, recipe)
    for trainer in (whole, half):
        advance([trainer], 6)
        trainer.row()
        advance([trainer], 7)
    half = Trainer(SMALL, recipe, state=half.state())
    for trainer in (whole, half):
        advance([trainer], 8)
    assert half.row().loss_nats == whole.row().loss_nats


def test_regret_is_not_defined_under_a_stationary_start():
    trainer = Trainer(SMALL, small(start="stationary"))
    assert math.isnan(trainer.row().regret_nats)


def test_model_is_a_copy():
    trainer = Trainer(SMALL, small())
    model = trainer.model()
    tokens = torch.from_numpy(sample_batch(0, batch=2, length=12).inputs)
    before = model(tokens)
    advance([trainer], 5)
    assert torch.equal(model(tokens), before)
    assert not model.embedding.requires_grad
    assert torch.allclose(folded_logits(fold(trainer.model()), tokens), trainer.model()(tokens), atol=1e-5)


def test_divergence_is_said():
    trainer = Trainer(SMALL, small(peak_lr=1e30))
    advance([trainer], 20)
    with pytest.raises(InputError, match="diverged before step 20: give a smaller --peak-lr"):
        trainer.row()


def test_bad_trainers():
    with pytest.raises(InputError, match="make them equal"):
        Trainer(SMALL, small(length=11))
    with pytest.raises(InputError, match="seed"):
        Trainer(SMALL, small(), seed=-1)
    with pytest.raises(InputError, match="the state holds"):
        Trainer(SMALL, small(), state=Trainer(ModelConfig(length=12, d_model=4), small()).state())
    with pytest.raises(InputError, match="device must be cpu or cuda"):
        Trainer(SMALL, small(), device="tpu")
