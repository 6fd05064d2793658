from __future__ import annotations

import pytest
import torch

from icl_estimators.transformer import (
    Folded,
    ModelConfig,
    Transformer,
    construction_folded,
    fold,
    folded_attention,
    folded_logits,
)
from icl_estimators.validation import InputError


def random_folded(k: int, length: int) -> Folded:
    generator = torch.Generator().manual_seed(k)
    shapes = ((k, k), (length,), (2 * k, 2 * k), (length,), (2 * k, k), (2 * k, k))
    return Folded(*(torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes))


def probabilities(folded: Folded, tokens: torch.Tensor) -> torch.Tensor:
    return folded_logits(folded, tokens).softmax(dim=-1)


def test_counts():
    folded = fold(Transformer())
    assert folded.count == 281
    assert folded.identified_count == 242
    assert folded.count == sum(tensor.numel() for tensor in folded.tensors)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_identified_count_is_the_rank_of_the_predictions(tokens_of, k):
    """The log probabilities' Jacobian with respect to the numbers has just that rank."""
    folded = random_folded(k, 7)
    tokens = tokens_of(k, (25, 7))
    sizes = [tensor.numel() for tensor in folded.tensors]

    def predictions(flat: torch.Tensor) -> torch.Tensor:
        parts = [part.view_as(old) for part, old in zip(flat.split(sizes), folded.tensors, strict=True)]
        return folded_logits(Folded(*parts), tokens).log_softmax(dim=-1).flatten()

    flat = torch.cat([tensor.flatten() for tensor in folded.tensors])
    jacobian = torch.autograd.functional.jacobian(predictions, flat)
    assert int(torch.linalg.matrix_rank(jacobian, rtol=1e-11)) == folded.identified_count
    assert flat.numel() == folded.count


@pytest.mark.parametrize("k", [2, 3, 5])
def test_centred_keeps_the_predictions_and_is_unique(tokens_of, k):
    folded = random_folded(k, 12)
    tokens = tokens_of(k, (8, 12))
    expected = probabilities(folded, tokens)
    centred = folded.centred()
    assert torch.allclose(probabilities(centred, tokens), expected, atol=1e-12)
    # What does not change the predictions changes nothing in the centred form either.
    generator = torch.Generator().manual_seed(9)
    by_query, by_key = (torch.randn(2 * k, generator=generator, dtype=torch.float64) for _ in range(2))
    between = torch.cat([torch.ones(k), -torch.ones(k)]).double()[:, None]  # +1 in the token block, −1 in the other
    moved = Folded(
        S1=folded.S1 + by_query[:k, None],
        r1=folded.r1 + 3.0,
        G=folded.G + by_query[:, None] * between.T + 1.5 + between * by_key,
        r2=folded.r2 - 2.0,
        direct=folded.direct + by_query[:, None] + between * by_key[:k],
        induction=folded.induction - by_query[:, None] + between * by_key[k:],
    )
    assert torch.allclose(probabilities(moved, tokens), expected, atol=1e-12)
    for one, other in zip(centred.tensors, moved.centred().tensors, strict=True):
        assert torch.allclose(one, other, atol=1e-12)


def test_form_of_the_centred_numbers():
    k = 3
    centred = random_folded(k, 11).centred()
    zero = torch.zeros((), dtype=torch.float64)
    assert torch.allclose(centred.S1.mean(dim=1), zero, atol=1e-14)
    assert torch.allclose(centred.G.view(2 * k, 2, k).mean(dim=2), zero, atol=1e-14)
    for read_out in (centred.direct, centred.induction):
        assert torch.allclose(read_out.mean(dim=1), zero, atol=1e-14)
    for bias in (centred.r1, centred.r2):
        assert abs(float(bias.median())) < 1e-14


def test_key_effect_is_what_centring_the_columns_would_lose(tokens_of):
    k = 3
    folded = random_folded(k, 10).centred()
    blocks = folded.G.view(2, k, 2 * k)
    double_centred = (blocks - blocks.mean(dim=1, keepdim=True)).view(2 * k, 2 * k)
    tokens = tokens_of(k, (5, 10))

    def with_scores(g: torch.Tensor) -> torch.Tensor:
        return probabilities(Folded(folded.S1, folded.r1, g, folded.r2, folded.direct, folded.induction), tokens)

    expected = probabilities(folded, tokens)
    assert torch.allclose(with_scores(double_centred + folded.key_effect() / 2), expected, atol=1e-12)
    assert not torch.allclose(with_scores(double_centred), expected, atol=1e-3)
    assert float(construction_folded(3, 10, 5.0, 1.0).key_effect().abs().max()) < 1e-14


@pytest.mark.parametrize("changed", [{"n_layers": 1}, {"n_layers": 3}, {"n_heads": 2}, {"sentinel": True}])
def test_other_models_do_not_fold(changed):
    with pytest.raises(InputError, match="run it unfolded"):
        fold(Transformer(ModelConfig(length=5, **changed)))


def test_fold_takes_a_leading_axis_of_models(random_model):
    models = [dict(random_model(3, length=8, seed=seed).named_parameters()) for seed in (1, 2)]
    together = fold({name: torch.stack([model[name] for model in models]) for name in models[0]})
    for index, model in enumerate(models):
        for one, other in zip(together.tensors, fold(model).tensors, strict=True):
            assert torch.allclose(one[index], other, atol=1e-6)


def test_construction_side_by_side():
    """In the folded basis the construction centres to β(I − 11ᵀ/K) and γ(I − 11ᵀ/K)."""
    k, beta, gamma = 3, 30.0, 2.0
    folded = construction_folded(k, 8, beta, gamma)
    centred = folded.centred()
    contrast = torch.eye(k, dtype=torch.float64) - 1.0 / k
    assert torch.allclose(centred.G[:k, k:], beta * contrast, atol=1e-12)
    assert torch.allclose(centred.direct[:k], gamma * contrast, atol=1e-12)
    assert torch.allclose(centred.induction[:k], gamma * contrast, atol=1e-12)
    assert float(centred.G[:k, :k].abs().max() + centred.G[k:].abs().max()) < 1e-12
    assert centred.r1.tolist() == [0.0, beta, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert construction_folded(2, 1, beta, gamma).r1.tolist() == [0.0]
    first, second = folded_attention(folded, torch.tensor([[0, 1, 0, 2, 0, 1]]))
    assert float(first.diagonal(-1, 1, 2).min()) > 1 - 1e-10
    # The third 0 looks for what follows 0: positions 1 and 3, and position 0, which reads itself.
    assert torch.allclose(second[0, 4], torch.tensor([1, 1, 0, 1, 0, 0], dtype=torch.float64) / 3, atol=1e-9)


def test_construction_bad_input():
    with pytest.raises(InputError, match="n_states"):
        construction_folded(1, 5, 1.0, 1.0)
    with pytest.raises(InputError, match="length"):
        construction_folded(3, 0, 1.0, 1.0)


def test_detach():
    folded = fold(Transformer())
    assert folded.G.requires_grad
    assert not folded.detach().G.requires_grad
