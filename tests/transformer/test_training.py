from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from icl_estimators.chains import ChainLaw, posterior_predictive, sample_batch, sample_batches, transition_counts
from icl_estimators.divergences import kl_divergence, log_loss
from icl_estimators.transformer import ModelConfig, Recipe, Trainer, Transformer, fold, folded_logits, folded_loss
from icl_estimators.transformer.training import (
    final_metrics,
    require_device,
    row_steps,
    snapshot_steps,
)
from icl_estimators.validation import InputError

SMALL = ModelConfig(length=12, d_model=8)


def small(steps: int = 20, **changed) -> Recipe:
    return Recipe(**{"steps": steps, "batch": 8, "length": 12, **changed})


def test_default_recipe():
    recipe = Recipe()
    assert (recipe.steps, recipe.batch, recipe.length, recipe.peak_lr) == (8000, 64, 100, 3e-3)
    assert recipe.learning_rate(0) == 3e-3
    assert recipe.learning_rate(4000) == pytest.approx(1.5e-3)
    assert 0.0 < recipe.learning_rate(7999) < 1e-9
    assert Recipe(schedule="constant").learning_rate(7999) == 3e-3


def test_recipe_round_trip():
    recipe = small(start="stationary", concentration=0.5)
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    with pytest.raises(InputError, match="lacks 'batch'"):
        Recipe.from_dict({name: value for name, value in recipe.to_dict().items() if name != "batch"})
    with pytest.raises(InputError, match="unknown field 'momentum'"):
        Recipe.from_dict({**recipe.to_dict(), "momentum": 0.9})


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"batch": 0}, "batch"),
        ({"length": 0}, "length"),
        ({"peak_lr": 0.0}, "peak_lr"),
        ({"peak_lr": math.nan}, "peak_lr"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"beta1": 1.0}, "beta1 must be a number from 0 up to"),
        ({"beta2": "0.9"}, "beta2"),
        ({"schedule": "linear"}, "schedule must be one of cosine, constant"),
        ({"concentration": 0.0}, "concentration"),
        ({"start": "first"}, "start must be one of"),
    ],
)
def test_bad_recipes(changed, says):
    with pytest.raises(InputError, match=says):
        Recipe(**changed)


def test_steps_that_are_kept():
    steps = snapshot_steps(8000)
    assert steps[:12] == [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20]
    assert steps[-2:] == [7943, 8000]
    assert len(steps) == 39
    assert snapshot_steps(1) == [0, 1]
    assert set(snapshot_steps(1000)) <= set(row_steps(1000))
    assert set(range(0, 1001, 100)) <= set(row_steps(1000))


def test_updates_are_adam_on_the_plain_model():
    """The trainer against the plain module, torch's own Adam and the cosine, on the addressed batches."""
    recipe = small(steps=30)
    trainer = Trainer(SMALL, recipe, seed=4)
    trainer.advance(30)
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
    whole.advance(20)
    state = None
    for stop in (3, 4, 11, 20):
        part = Trainer(config, recipe, seed=1, state=state)
        part.advance(stop)
        state = part.state()
    assert state is not None
    for field in ("weights", "first_moment", "second_moment", "loss_sum"):
        assert torch.equal(getattr(state, field), getattr(whole.state(), field))


def test_the_state_is_a_copy():
    trainer = Trainer(SMALL, small())
    trainer.advance(2)
    state, parameters = trainer.state(), trainer.parameters()["embedding"].clone()
    trainer.advance(4)
    assert torch.equal(state.weights[: parameters.numel()], parameters.flatten())


def test_seeds_differ_in_weights_and_chains():
    one, other = Trainer(SMALL, small(), seed=0), Trainer(SMALL, small(), seed=1)
    assert not torch.equal(one.state().weights, other.state().weights)
    assert not torch.equal(one.batch(0), other.batch(0))
    assert not torch.equal(one.batch(0), one.batch(1))


def test_steps_are_not_overrun_and_can_be_stopped():
    trainer = Trainer(SMALL, small(steps=5))
    trainer.advance(50)
    assert trainer.step == 5
    trainer = Trainer(SMALL, small())
    trainer.advance(20, should_stop=lambda: trainer.step >= 7)
    assert trainer.step == 7


def test_rows():
    trainer = Trainer(SMALL, small(steps=200, batch=4))
    first = trainer.row()
    assert first.step == 0
    assert math.isnan(first.loss_nats)
    assert math.isnan(first.tokens_per_second)
    assert first.learning_rate == 3e-3
    before = trainer.state().weights
    trainer.advance(1)
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
        trainer.advance(6)
        trainer.row()
        trainer.advance(7)
    half = Trainer(SMALL, recipe, state=half.state())
    for trainer in (whole, half):
        trainer.advance(8)
    assert half.row().loss_nats == whole.row().loss_nats


def test_final_metrics(monkeypatch):
    """Regret is KL from the posterior predictive; memory-saving blocks change nothing."""
    model = Transformer(SMALL).requires_grad_(False)
    metrics = final_metrics(model, small())
    assert metrics["sequences"] == 20_480
    sample = sample_batches(range(4, 324), batch=64, length=12, purpose="validation")
    p = model(torch.from_numpy(sample.inputs.copy())).double().softmax(dim=-1).numpy()
    q = posterior_predictive(transition_counts(sample.inputs, 3), 1.0)
    regret = kl_divergence(q, p)
    assert metrics["regret_nats"] == pytest.approx(regret.mean(), rel=1e-5)
    assert metrics["regret_late_nats"] == pytest.approx(regret[:, 6:].mean(), rel=1e-5)
    assert metrics["regret_nats_se"] == pytest.approx(regret.mean(axis=1).std(ddof=1) / math.sqrt(20_480), rel=1e-4)
    assert metrics["log_loss_nats"] == pytest.approx(log_loss(p, sample.targets).mean(), rel=1e-6)
    monkeypatch.setattr("icl_estimators.transformer.training._BATCHES_PER_BLOCK", 77)
    assert final_metrics(model, small()) == metrics


def test_final_metrics_under_a_stationary_start():
    metrics = final_metrics(Transformer(SMALL).requires_grad_(False), small(start="stationary"))
    for name in ("regret_nats", "regret_nats_se", "regret_late_nats", "regret_late_nats_se"):
        assert metrics[name] is None
    assert metrics["log_loss_nats"] > 0


def test_regret_is_not_defined_under_a_stationary_start():
    trainer = Trainer(SMALL, small(start="stationary"))
    assert math.isnan(trainer.row().regret_nats)


def test_held_out_sequences_are_not_the_training_ones():
    law = ChainLaw()
    training = sample_batch(0, batch=64, length=100, law=law, seed=0).tokens
    held_out = sample_batch(0, batch=64, length=100, law=law, seed=0, purpose="validation").tokens
    assert not np.array_equal(training, held_out)


def test_model_is_a_copy():
    trainer = Trainer(SMALL, small())
    model = trainer.model()
    tokens = torch.from_numpy(sample_batch(0, batch=2, length=12).inputs)
    before = model(tokens)
    trainer.advance(5)
    assert torch.equal(model(tokens), before)
    assert not model.embedding.requires_grad
    assert torch.allclose(folded_logits(fold(trainer.model()), tokens), trainer.model()(tokens), atol=1e-5)


def test_divergence_is_said():
    trainer = Trainer(SMALL, small(peak_lr=1e30))
    trainer.advance(20)
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


def test_device_that_is_absent():
    with pytest.raises(InputError, match="device must be cpu or cuda, not 'meta'"):
        require_device("meta")
    absent = f"cuda:{torch.cuda.device_count()}"
    with pytest.raises(InputError, match=f"there is no device {absent} here"):
        require_device(absent)
