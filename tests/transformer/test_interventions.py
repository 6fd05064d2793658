from __future__ import annotations

import pytest
import torch

from icl_estimators.transformer import (
    INTERVENTIONS,
    PERFECT_READ_OUT,
    Folded,
    Intervention,
    construction_folded,
    folded_attention,
    folded_logits,
    intervened_attention,
    intervened_logits,
)
from icl_estimators.validation import InputError

K, T = 3, 12


@pytest.fixture(scope="module")
def folded():
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    return Folded(draw(K, K), draw(T), draw(2 * K, 2 * K), draw(T), draw(2 * K, K), draw(2 * K, K))


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(0, K, (5, T), generator=torch.Generator().manual_seed(1))


def by_hand(folded, tokens, intervention):
    """Position by position, from the definition of the folded form."""
    out = torch.empty(*tokens.shape, K, dtype=torch.float64)
    for b, sequence in enumerate(tokens.tolist()):
        phi = []
        for i, token in enumerate(sequence):
            scores = torch.stack([folded.S1[token, sequence[j]] + folded.r1[i - j] for j in range(i + 1)])
            weights = scores.softmax(dim=0)
            matches = torch.tensor([float(j > 0 and sequence[j - 1] == token) for j in range(i + 1)]).double()
            shapes = {
                "previous": torch.eye(i + 1, dtype=torch.float64)[max(i - 1, 0)],
                "uniform": torch.full((i + 1,), 1 / (i + 1), dtype=torch.float64),
                **({"match": matches / matches.sum()} if matches.sum() else {}),
            }
            weights = shapes.get(intervention.layer1, weights)
            mass = torch.zeros(K, dtype=torch.float64).index_add(0, torch.tensor(sequence[: i + 1]), weights)
            if intervention.layer1 == "zero":
                mass = 0 * mass
            phi.append(torch.cat([torch.eye(K, dtype=torch.float64)[token], mass]))
            scores = torch.stack([phi[i] @ folded.G @ phi[j] + folded.r2[i - j] for j in range(i + 1)])
            attention = shapes.get(intervention.layer2, scores.softmax(dim=0))
            if intervention.perfect_read_out:
                mass = torch.zeros(K, dtype=torch.float64)
                out[b, i] = mass.index_add(0, torch.tensor(sequence[: i + 1]), attention).log()
                continue
            averaged = attention @ torch.stack(phi) * (intervention.layer2 != "zero")
            logits = intervention.read_out_scale * (averaged @ folded.induction)
            out[b, i] = logits + (phi[i] @ folded.direct if intervention.direct_path else 0.0)
    return out


HEADS = (None, "previous", "match", "uniform", "zero")
REPLACED = [Intervention(f"{one}, {two}", layer1=one, layer2=two) for one in HEADS for two in HEADS]


@pytest.mark.parametrize("intervention", [*REPLACED, *INTERVENTIONS, PERFECT_READ_OUT], ids=lambda item: item.name)
def test_every_intervention_is_what_it_says(folded, tokens, intervention):
    logits = intervened_logits(folded, tokens, intervention)
    torch.testing.assert_close(logits.softmax(-1), by_hand(folded, tokens, intervention).softmax(-1))


def test_nothing_replaced_is_the_intact_model(folded, tokens):
    assert torch.equal(intervened_logits(folded, tokens, Intervention()), folded_logits(folded, tokens))


@pytest.mark.parametrize("intervention", REPLACED, ids=lambda item: item.name)
def test_the_attention_is_causal_and_what_is_replaced(folded, tokens, intervention):
    trained = folded_attention(folded, tokens)
    shown = intervened_attention(folded, tokens, intervention)
    for weights in shown:
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(*tokens.shape, dtype=torch.float64))
        assert float(weights.triu(1).abs().max()) == 0
    if intervention.layer1 in (None, "zero"):
        assert torch.equal(shown[0], trained[0])
    if intervention.layer1 is None and intervention.layer2 in (None, "zero"):
        assert torch.equal(shown[1], trained[1])
    if intervention.layer1 == "previous":
        assert torch.equal(shown[0][0].argmax(dim=-1), torch.arange(-1, T - 1).clamp(min=0))
    if intervention.layer2 == "uniform":
        assert shown[1][0, 3].tolist() == [0.25] * 4 + [0.0] * (T - 4)


def test_an_unknown_head_is_named():
    for layer in ("layer1", "layer2"):
        with pytest.raises(InputError, match=f"{layer} must be one of previous, match, uniform, zero, not 'exact'"):
            Intervention("odd", **{layer: "exact"})


def test_exact_attention_leaves_the_construction_as_it_is_but_for_the_first_position(tokens):
    # Without a sentinel the first position reads itself, so it seems to match every later query of its own token.
    folded = construction_folded(K, T, beta=50.0, gamma=2.0)
    exact = Intervention("exact", layer1="previous", layer2="match")
    apart = (intervened_logits(folded, tokens, exact) - folded_logits(folded, tokens)).abs().amax(dim=-1)
    assert float(apart[tokens != tokens[:, :1]].max()) < 1e-6
    assert float(apart.max()) > 0.1


def test_exact_attention_reads_the_frequencies(folded, tokens):
    plain = Intervention("reading", layer1="previous", layer2="match", direct_path=False)
    zero = torch.zeros_like(folded.direct)
    reading = Folded(
        folded.S1, folded.r1, folded.G, folded.r2, zero, torch.cat([torch.eye(K), torch.zeros(K, K)]).double()
    )
    logits = intervened_logits(reading, tokens, plain)
    for b, sequence in enumerate(tokens.tolist()):
        followers = [sequence[j] for j in range(1, T) if sequence[j - 1] == sequence[-1]]
        if followers:
            frequency = torch.tensor([followers.count(w) / len(followers) for w in range(K)], dtype=torch.float64)
            apart = logits[b, -1] - frequency
            torch.testing.assert_close(apart, apart.mean().expand(K))


@pytest.mark.parametrize("scale", [-1.0, float("inf"), float("nan")])
def test_a_scale_out_of_range_is_named(scale):
    with pytest.raises(InputError, match="read_out_scale"):
        Intervention("odd", read_out_scale=scale)


def test_an_unknown_distance_is_named(folded, tokens):
    with pytest.raises(InputError, match="far"):
        intervened_logits(folded, tokens, Intervention(), far=99)
    with pytest.raises(InputError, match="far"):
        intervened_attention(folded, tokens, Intervention(), far=99)


@pytest.mark.parametrize("other", [{"direct_path": False}, {"read_out_scale": 2.0}])
def test_a_perfect_read_out_cannot_be_changed_further(other):
    with pytest.raises(InputError, match="a perfect read-out has no direct path and no scale"):
        Intervention("both", perfect_read_out=True, **other)
