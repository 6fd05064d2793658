"""The trained model by the kernel: the same predictions, whoever asks and however much."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from icl_estimators import ChainLaw, compare
from icl_estimators.estimators import Estimator, expect, get
from icl_estimators.estimators.transformer import Transformer
from icl_estimators.experiments.study import Study
from icl_estimators.sources import sample_chains
from icl_estimators.transformer import ModelConfig, save_checkpoint
from icl_estimators.transformer import Transformer as Model
from icl_estimators.transformer.checkpoint import CheckpointInfo
from icl_estimators.validation import InputError


@pytest.fixture(scope="module")
def tokens() -> np.ndarray:
    return sample_chains(range(150), sequences_per_chain=1, length=100, purpose="test").inputs


@pytest.fixture(scope="module")
def kernel() -> Estimator:
    return get("transformer:engine=kernel")


@pytest.mark.parametrize("checkpoint_states", [3, 4])
@pytest.mark.parametrize("length", [1, 100, 170])
def test_the_logits_of_torch(checkpoint_states, length):
    tokens = np.random.default_rng(length).integers(0, checkpoint_states, (70, length))
    by_torch = Transformer(checkpoint_states, engine="torch")
    by_kernel = Transformer(checkpoint_states, engine="kernel")
    np.testing.assert_allclose(by_kernel.logits(tokens), by_torch.logits(tokens), rtol=0, atol=1e-5)
    np.testing.assert_allclose(by_kernel.predict_proba(tokens), by_torch.predict_proba(tokens), rtol=0, atol=2e-6)


def test_predictions_depend_on_the_prefix_alone(kernel, tokens):
    whole = kernel.predict_proba(tokens)
    assert np.array_equal(kernel.predict_proba(tokens[33:34]), whole[33:34])
    assert np.array_equal(kernel.predict_proba(tokens[:, :41]), whole[:, :41])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert np.array_equal(kernel.predict_proba(tokens), whole)
    finally:
        torch.set_num_threads(before)


def test_torch_until_told_that_much_is_coming():
    rule, other, fixed = get("transformer"), get("add-one"), get("transformer:engine=torch")
    assert rule.engine == "torch"
    expect([rule, other, fixed], 1000, 100)
    assert rule.engine == "torch"
    expect([rule, other, fixed], 1_000_000, 100)
    assert (rule.engine, rule.name) == ("kernel", "transformer")
    assert (fixed.engine, fixed.name) == ("torch", "transformer:engine=torch")
    assert pickle.loads(pickle.dumps(rule)).engine == "kernel"  # worker processes do the same


def test_a_large_study_is_told_and_says_so(kernel):
    small = Study((get("transformer"), get("add-one")), "add-one", source=ChainLaw(), length=100, chains=100)
    small.announce()
    assert "kernel" not in small.record()
    large = Study((get("transformer"), get("add-one")), "add-one", source=ChainLaw(), length=100, chains=100_000)
    large.announce()
    assert large.record()["kernel"] == ["transformer"]


@pytest.mark.slow
def test_the_same_tables_for_any_number_of_processes(monkeypatch):
    monkeypatch.setattr("icl_estimators.engine.running._WORTH_PROCESSES", 0)
    tables = [
        compare(
            ["transformer:engine=kernel", "add-one"],
            chains=200,
            sequences_per_chain=2,
            decomposition_chains=50,
            decomposition_sequences=2,
            length=30,
            jobs=jobs,
        ).risk
        for jobs in (1, 2)
    ]
    assert tables[0].equals(tables[1])


def test_bad_engines(tmp_path):
    with pytest.raises(InputError, match="engine must be one of auto, kernel, torch, not 'steam'"):
        get("transformer:engine=steam")
    path = tmp_path / "deep.safetensors"
    config = ModelConfig(n_layers=3, d_model=4, length=5)
    info = CheckpointInfo(config.to_dict(), 0, 0, {}, {}, 1, "cpu", {}, None)
    save_checkpoint(path, dict(Model(config).named_parameters()), info)
    with pytest.raises(InputError, match="the engine kernel needs two layers of one head"):
        Transformer(3, checkpoint=path, engine="kernel")
    deep = Transformer(3, checkpoint=path)
    deep.expect(10**7, 100)
    assert deep.engine == "torch"


def test_weights_whose_scores_overflow_are_refused(tmp_path):
    path = tmp_path / "huge.safetensors"
    config = ModelConfig(d_model=4, length=5)
    weights = {name: 1e15 * tensor for name, tensor in Model(config).named_parameters()}
    save_checkpoint(path, weights, CheckpointInfo(config.to_dict(), 0, 0, {}, {}, 1, "cpu", {}, None))
    with pytest.raises(InputError, match="so large that its scores overflow"):
        Transformer(3, checkpoint=path)


def test_wild_scores_are_left_to_torch(kernel, tokens):
    """Finite scores that lie too far apart: the slower path, and right."""
    wild = Transformer(3, engine="kernel")
    folded = wild.folded
    assert folded is not None
    folded.r2.mul_(100.0)
    plain = Transformer(3, engine="torch")
    assert plain.folded is not None
    plain.folded.r2.mul_(100.0)
    assert np.array_equal(wild.predict_proba(tokens[:5]), plain.predict_proba(tokens[:5]))
    assert np.array_equal(wild.logits(tokens[:5]), plain.logits(tokens[:5]))
