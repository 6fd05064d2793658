from __future__ import annotations

import pytest
import torch

pytest.importorskip("numba")

from icl_estimators.transformer import ModelConfig
from icl_estimators.transformer.training import Recipe, Trainer
from icl_estimators.transformer.training.alignment import may_share
from icl_estimators.transformer.training.joint_updates import advance_together
from icl_estimators.transformer.training.trainer import TrainingState
from icl_estimators.transformer.training.updates import advance
from icl_estimators.validation import InputError

CONFIG, RECIPE = ModelConfig(length=20, d_model=16), Recipe(steps=40, batch=24, length=20)
FIELDS = ("weights", "first_moment", "second_moment", "loss_sum")


def trainer(seed: int = 0, config: ModelConfig = CONFIG, state: TrainingState | None = None, **engine) -> Trainer:
    recipe = Recipe(steps=40, batch=24, length=config.length)
    return Trainer(config, recipe, seed=seed, state=state, **{"engine": "kernel", **engine})


def same(one: Trainer, other: Trainer) -> bool:
    first, second = one.state(), other.state()
    assert first.step == second.step
    return all(torch.equal(getattr(first, field), getattr(second, field)) for field in FIELDS)


def test_the_kernel_s_updates_are_those_of_torch():
    one, other = trainer(), trainer(engine="torch")
    for run in (one, other):
        advance([run], 40)
    assert torch.allclose(one.state().weights, other.state().weights, atol=2e-4)
    assert float(one.state().loss_sum) == pytest.approx(float(other.state().loss_sum), rel=1e-5)
    assert one.row().regret_nats == pytest.approx(other.row().regret_nats, abs=1e-4)


@pytest.mark.parametrize("d_model", [16, 64, 80])
@pytest.mark.parametrize("n_states", [2, 3])
def test_each_run_is_the_run_it_is_alone(d_model, n_states):
    config = ModelConfig(n_states=n_states, length=20, d_model=d_model)
    assert may_share(d_model)
    together = [trainer(seed, config) for seed in range(7)]
    advance_together(together, 12)
    for seed in (0, 3, 6):
        alone = trainer(seed, config)
        advance([alone], 12)
        assert same(alone, together[seed])


def test_neither_the_group_nor_a_stop_nor_threads_change_anything():
    whole = [trainer(seed) for seed in range(3)]
    advance_together(whole, 40)
    parts = [trainer(seed) for seed in range(3)]
    advance_together(parts, 11)
    parts = [trainer(seed, state=run.state()) for seed, run in enumerate(parts)]
    advance_together(parts[:1], 25)
    advance_together(parts[1:], 25)
    parts = [trainer(seed, state=run.state()) for seed, run in enumerate(parts)]
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        advance_together(parts[::-1], 40)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert all(map(same, whole, parts))


def test_steps_are_not_overrun_and_can_be_stopped():
    runs = [trainer(seed) for seed in range(2)]
    advance_together(runs, 40, should_stop=lambda: runs[1].step >= 7)
    assert [run.step for run in runs] == [7, 7]
    advance_together(runs, 400)
    assert [run.step for run in runs] == [40, 40]


def test_an_error_in_the_middle_loses_no_update(monkeypatch):
    """What was done before an interrupt is in the trainers: weights and moments of the same step."""
    runs = [trainer(seed) for seed in range(2)]

    def interrupt():
        if runs[0].step == 5:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        advance_together(runs, 40, interrupt)
    alone = trainer(1)
    advance([alone], 5)
    assert same(alone, runs[1])


def test_a_run_that_diverges_leaves_the_others_alone():
    runs = [trainer(seed) for seed in range(3)]
    with torch.no_grad():
        runs[1].weights[0] = torch.nan
    advance_together(runs, 5)
    for seed in (0, 2):
        alone = trainer(seed)
        advance([alone], 5)
        assert same(alone, runs[seed])
    assert bool(runs[1].loss_sum.isnan())


def test_runs_of_different_engines_do_not_advance_together():
    config, recipe = ModelConfig(length=10), Recipe(steps=4, batch=8, length=10)
    runs = [Trainer(config, recipe), Trainer(config, recipe, engine="kernel")]
    with pytest.raises(InputError, match="different engines"):
        advance(runs, 2)
