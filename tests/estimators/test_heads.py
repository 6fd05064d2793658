from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from icl_estimators.api import compare
from icl_estimators.estimators import ContractError, check_estimator, get
from icl_estimators.estimators.heads import heads_of
from icl_estimators.estimators.model import TorchModel, from_torch
from icl_estimators.experiments.prompt_attention import layers_of
from icl_estimators.python_commands import train_transformer
from strange_rules import Flat

TOKENS = np.array([[0, 1, 2, 0, 1], [2, 2, 1, 0, 0]])
K = 3


def gpt2(attention: str = "eager", *, vocabulary: int = 64, positions: int = 40) -> Any:
    """Return a small GPT-2 of Hugging Face's transformers with random weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers = pytest.importorskip("transformers")
        torch.manual_seed(0)
        config = transformers.GPT2Config(
            vocab_size=vocabulary,
            n_positions=positions,
            n_embd=16,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
            attn_implementation=attention,
        )
        return transformers.GPT2LMHeadModel(config)


def lens() -> Any:
    """Return a small TransformerLens model with random weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformer_lens = pytest.importorskip("transformer_lens")
        torch.manual_seed(0)
        config = transformer_lens.HookedTransformerConfig(
            n_layers=2, n_heads=2, d_model=16, d_head=8, n_ctx=40, d_vocab=64, attn_only=True, device="cpu", seed=0
        )
        return transformer_lens.HookedTransformer(config)


def wrapped(make: Callable[[], Any]) -> TorchModel:
    return from_torch(make(), n_states=K, tokens=[7, 11, 13], bos=50, max_length=30, name="random")


@pytest.mark.parametrize("make", [gpt2, lens])
def test_models_of_known_libraries_keep_the_contract_and_show_their_heads(make: Callable[[], Any]) -> None:
    model = wrapped(make)
    check_estimator(model, K, length=35)
    layers = heads_of(model, TOKENS)
    assert layers is not None
    assert [layer.shape for layer in layers] == [(2, 2, 6, 6)] * 2
    assert 0 < model.mass_elsewhere(TOKENS).min() < 1
    prompt = layers_of(model, TOKENS[0])
    assert prompt is not None
    np.testing.assert_array_equal(prompt[1], layers[1][0])


def test_the_heads_of_gpt2_are_its_own() -> None:
    module = gpt2()
    layers = heads_of(from_torch(module, n_states=K), TOKENS)
    module.eval()
    with torch.no_grad():
        expected = module(torch.tensor(TOKENS), output_attentions=True).attentions
    assert layers is not None
    for layer, own in zip(layers, expected, strict=True):
        np.testing.assert_allclose(layer, own.numpy(), atol=1e-6)


def test_a_model_that_keeps_its_attention_to_itself_says_how_to_show_it() -> None:
    model = from_torch(gpt2("sdpa"), n_states=K, name="quiet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ContractError, match=r'quiet: the model does not return its attention: .*"eager"'):
            heads_of(model, TOKENS)


def test_a_function_of_ones_own_shows_the_heads() -> None:
    def uniform(batch: torch.Tensor) -> list[torch.Tensor]:
        n, t = batch.shape
        rows = torch.ones(t, t).tril()
        return [(rows / rows.sum(1, keepdim=True)).expand(n, 3, t, t)]

    model = from_torch(torch.nn.Embedding(K, K), n_states=K, attention=uniform, batch_size=1)
    layers = heads_of(model, TOKENS)
    assert layers is not None
    assert layers[0].shape == (2, 3, 5, 5)
    assert heads_of(from_torch(torch.nn.Embedding(K, K), n_states=K), TOKENS) is None
    with pytest.raises(ContractError, match="attention is shown for up to 4 tokens, its max_length"):
        heads_of(from_torch(torch.nn.Embedding(K, K), n_states=K, attention=uniform, max_length=4), TOKENS)


@pytest.mark.parametrize(("layers", "heads", "sentinel"), [(2, 2, False), (1, 1, True), (1, 2, False)])
def test_models_of_the_package_of_any_form_show_their_heads(
    tmp_path: Path, layers: int, heads: int, sentinel: bool
) -> None:
    form = {"n_layers": layers, "n_heads": heads, "sentinel": sentinel, "d_model": 8, "length": 9}
    (file,) = train_transformer(tmp_path, steps=2, batch=2, engine="torch", **form)
    found = heads_of(get("transformer", checkpoint=file), TOKENS)
    assert found is not None
    assert [layer.shape for layer in found] == [(2, heads, 5 + sentinel, 5 + sentinel)] * layers


def test_rules_with_attention_show_it_too() -> None:
    pair = heads_of(get("construction"), TOKENS)
    assert pair is not None
    assert len(pair) == 2
    assert heads_of(get("uniform"), TOKENS) is None


class Showing(Flat):
    """Shows what it is told to."""

    def __init__(self, shown: Any) -> None:
        super().__init__("showing")
        self.shown = shown

    def attention_heads(self, tokens: np.ndarray) -> Any:
        return self.shown(tokens) if callable(self.shown) else self.shown


def looking(tokens: np.ndarray, back: int) -> np.ndarray:
    """Return heads that look `back` positions back, or at the first token."""
    n, t = tokens.shape
    keys = np.maximum(np.arange(t) - back, 0)
    return np.broadcast_to(np.eye(t)[keys], (n, 1, t, t)).copy()


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ([np.ones((2, 5, 5))], "returned shape .2, 5, 5. for layer 1"),
        ([np.full((2, 1, 5, 5), 0.2)], "layer 1 attends to later positions: rows are queries, columns keys"),
        ([np.zeros((2, 1, 5, 5))], "rows of layer 1 do not sum to 1: return weights, not scores"),
        (3, "attention_heads.tokens. failed|object of type 'int' has no len"),
    ],
)
def test_what_are_no_weights_is_refused(shown: Any, message: str) -> None:
    with pytest.raises((ContractError, TypeError), match=message):
        heads_of(Showing(shown), TOKENS)


def test_a_method_that_fails_is_named() -> None:
    def fail(tokens: np.ndarray) -> None:
        raise LookupError("no such layer")

    with pytest.raises(ContractError, match=r"showing: attention_heads\(tokens\) failed: LookupError: no such layer"):
        heads_of(Showing(fail), TOKENS)
    assert heads_of(Showing(None), TOKENS) is None


def test_a_comparison_names_the_head_that_looks_back() -> None:
    rule = Showing(
        lambda tokens: [np.concatenate([looking(tokens, 0), looking(tokens, 1)], axis=1), looking(tokens, 3)]
    )
    found = compare([rule, "construction"], chains=30, length=8, sequences_per_chain=1, decomposition_chains=0)
    frame = found.heads
    assert set(frame.estimator) == {"showing"}  # attention.csv has the construction
    mean = frame[frame.context_length == "mean"].set_index(["layer", "head", "quantity"])
    row = mean.loc[1, 2, "previous_token_mass"]
    assert (row.estimate, row.best) == (1.0, True)
    assert row.chance == pytest.approx(np.mean([1 / n for n in range(2, 9)]))
    assert mean.loc[1, 1, "previous_token_mass"].estimate == 0.0
    assert mean.best.sum() == 2
    assert "showing: the best previous-token head is head 2 of layer 1, with 1.00 of its attention" in found.summary()


def test_matching_mass_is_that_of_the_positions_after_earlier_occurrences() -> None:
    tokens_seen: list[np.ndarray] = []

    def show(tokens: np.ndarray) -> list[np.ndarray]:
        tokens_seen.append(tokens.copy())
        n, t = tokens.shape
        weights = np.broadcast_to(np.tril(np.ones((t, t))) / np.arange(1, t + 1)[:, None], (n, 3, t, t)).copy()
        return [weights]

    found = compare([Showing(show)], chains=20, length=7, sequences_per_chain=1, decomposition_chains=0)
    frame = found.heads.query("quantity == 'match_mass'")
    np.testing.assert_allclose(frame.estimate.to_numpy(float), frame.chance.to_numpy(float), atol=1e-12)
