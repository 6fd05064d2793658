from __future__ import annotations

import math

import pytest
import torch

from icl_estimators.transformer import ModelConfig, Transformer, initial_parameters
from icl_estimators.validation import InputError


def test_parameters_are_those_of_the_config():
    config = ModelConfig(n_states=4, n_layers=3, n_heads=2, sentinel=True, length=9)
    shapes = {name: tuple(parameter.shape) for name, parameter in Transformer(config).named_parameters()}
    assert shapes == config.parameter_shapes
    assert sum(math.prod(shape) for shape in shapes.values()) == config.parameter_count


def test_initial_weights():
    weights = initial_parameters(ModelConfig(), seed=3)
    assert abs(float(weights["embedding"].std()) - 0.1) < 0.02
    assert float(weights["layers.0.distance_bias"].abs().max()) == 0.0
    query = weights["layers.1.query"]
    assert float(query.abs().max()) <= 1 / 8
    assert abs(float(query.std()) - 1 / 8 / math.sqrt(3)) < 0.002
    again, other = initial_parameters(ModelConfig(), seed=3), initial_parameters(ModelConfig(), seed=4)
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    assert not torch.equal(query, other["layers.1.query"])


def test_seed_below_zero():
    with pytest.raises(InputError, match="seed"):
        initial_parameters(ModelConfig(), seed=-1)
    with pytest.raises(InputError, match="seed"):
        Transformer(seed=-1)


@pytest.mark.parametrize("config", [{}, {"n_heads": 4, "n_layers": 3}, {"sentinel": True}])
def test_forward_is_the_written_out_sum(random_model, tokens_of, config):
    """Against plain loops over positions and heads, straight from the definition."""
    model = random_model(3, length=6, d_model=8, **config).double()
    tokens = tokens_of(3, (2, 6))
    sentinel, n_heads = model.config.sentinel, model.config.n_heads
    x = model.embedding[torch.cat([torch.full((2, 1), 3), tokens], dim=1) if sentinel else tokens]
    width = 8 // n_heads
    for layer in model.layers:
        out = torch.zeros_like(x)
        for b in range(2):
            for h in range(n_heads):
                part = slice(h * width, (h + 1) * width)
                q, k, v = (x[b] @ matrix[:, part] for matrix in (layer.query, layer.key, layer.value))
                for i in range(x.shape[1]):
                    scores = [q[i] @ k[j] / math.sqrt(width) + layer.distance_bias[h, i - j] for j in range(i + 1)]
                    out[b, i] += (torch.stack(scores).softmax(dim=0) @ v[: i + 1]) @ layer.output[part]
        x = x + out
    expected = x @ model.unembedding
    assert torch.allclose(model(tokens), expected[:, 1:] if sentinel else expected, atol=1e-12)


@pytest.mark.parametrize("config", [{}, {"n_heads": 2}, {"sentinel": True}])
def test_attention_is_causal_and_sums_to_one(random_model, tokens_of, config):
    model = random_model(3, length=10, **config)
    with torch.no_grad():
        matrices = model.attention(tokens_of(3, (4, 10)))
    size = 11 if model.config.sentinel else 10
    assert len(matrices) == 2
    for matrix in matrices:
        assert matrix.shape == (4, model.config.n_heads, size, size)
        assert torch.allclose(matrix.sum(dim=-1), torch.ones(()), atol=1e-6)
        assert float(matrix.triu(1).abs().max()) == 0.0


@pytest.mark.parametrize("config", [{}, {"n_heads": 2, "n_layers": 3}, {"sentinel": True}])
def test_causality_is_bitwise(random_model, tokens_of, config):
    model = random_model(4, length=30, **config)
    tokens = tokens_of(4, (5, 30))
    changed = tokens.clone()
    changed[:, 17:] = (changed[:, 17:] + 1) % 4
    with torch.no_grad():
        assert torch.equal(model(tokens)[:, :17], model(changed)[:, :17])


@pytest.mark.parametrize("config", [{}, {"sentinel": True}])
def test_longer_contexts_follow_the_rule(random_model, tokens_of, config):
    """Beyond the trained length the logits depend on the rule; within it they do not even know what follows."""
    model = random_model(3, length=10, **config)
    tokens = tokens_of(3, (3, 16))
    with torch.no_grad():
        by_default, last, first = model(tokens), model(tokens, far="last"), model(tokens, far=0)
        short = model(tokens[:, :10])
    assert torch.equal(by_default[:, :10], last[:, :10])
    assert torch.allclose(by_default[:, :10], short, atol=1e-6)
    assert not torch.allclose(by_default[:, 12:], last[:, 12:], atol=1e-4)
    assert not torch.allclose(first[:, 12:], last[:, 12:], atol=1e-4)


def test_bad_input():
    model = Transformer(ModelConfig(length=5))
    tokens = torch.zeros(1, 3, dtype=torch.int64)
    with pytest.raises(InputError, match="far must be"):
        model(tokens, far=5)
    with pytest.raises(InputError, match="far must be"):
        model.attention(tokens, far="nearest")
    for wrong in (tokens[:0], tokens[0]):
        with pytest.raises(InputError, match="non-empty"):
            model(wrong)
        with pytest.raises(InputError, match="non-empty"):
            model.attention(wrong)
