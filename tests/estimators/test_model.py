from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from icl_estimators import compare, from_torch
from icl_estimators.estimators import ContractError, check_estimator, get
from icl_estimators.estimators.capabilities import device_of, reads_window, stated_tolerance
from icl_estimators.validation import InputError


class Recurrent(nn.Module):
    """A recurrent network from tokens to logits."""

    def __init__(self, kind: type[nn.GRU] | type[nn.LSTM] = nn.GRU, vocabulary: int = 3, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(vocabulary, 8)
        self.cell = kind(8, 8, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(8, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        read: torch.Tensor = self.head(self.dropout(self.cell(self.embedding(tokens))[0]))
        return read


class Positions(nn.Module):
    """A model with learned positions: it cannot read more than it has."""

    def __init__(self, longest: int) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.token, self.place, self.head = nn.Embedding(4, 8), nn.Embedding(longest, 8), nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor) -> SimpleNamespace:
        seen = self.token(tokens) + self.place(torch.arange(tokens.shape[1]))
        return SimpleNamespace(logits=self.head(seen.cumsum(dim=1)))


class AddOneInTorch(nn.Module):
    """The add-one rule, written in torch: its predictions are known."""

    def __init__(self, offset: int = 0, vocabulary: int = 3) -> None:
        super().__init__()
        self.offset, self.vocabulary = offset, vocabulary

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        states = tokens - self.offset
        hot = nn.functional.one_hot(states, 3).double()
        pairs = torch.einsum("ntv,ntw->ntvw", hot[:, :-1], hot[:, 1:]).cumsum(dim=1)
        counts = torch.cat([torch.zeros(len(tokens), 1, 3, 3, dtype=torch.float64), pairs], dim=1)
        row = torch.einsum("ntvw,ntv->ntw", counts, hot) + 1.0
        logits = torch.full((*tokens.shape, self.vocabulary), -1.0, dtype=torch.float64)
        logits[..., self.offset : self.offset + 3] = row.log()
        return logits


TOKENS = np.random.default_rng(0).integers(0, 3, size=(5, 12))


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_recurrent_networks_keep_the_contract(kind: type[nn.GRU]) -> None:
    model = from_torch(Recurrent(kind), n_states=3)
    check_estimator(model, 3, length=20)
    assert model.name == "Recurrent"
    assert not reads_window(model)
    assert device_of(model) in (None, "cpu")


def test_predictions_are_the_softmax_of_the_logits() -> None:
    module = Recurrent()
    expected = torch.softmax(module(torch.tensor(TOKENS)).double(), dim=-1).detach().numpy()
    np.testing.assert_allclose(from_torch(module, n_states=3).predict_proba(TOKENS), expected, atol=1e-12)


def test_a_known_rule_in_torch_is_that_rule() -> None:
    np.testing.assert_allclose(
        from_torch(AddOneInTorch(), n_states=3).predict_proba(TOKENS), get("add-one").predict_proba(TOKENS), atol=1e-12
    )


def test_states_are_entries_of_a_larger_vocabulary() -> None:
    model = from_torch(AddOneInTorch(offset=40, vocabulary=64), n_states=3, tokens=[40, 41, 42])
    np.testing.assert_allclose(model.predict_proba(TOKENS), get("add-one").predict_proba(TOKENS), atol=1e-12)
    own = np.exp(np.full(61, -1.0)).sum()
    n = get("add-one").predict_proba(TOKENS[:1, :1])
    assert n.shape == (1, 1, 3)
    np.testing.assert_allclose(model.mass_elsewhere(TOKENS[:, :1]), own / (own + 3.0), atol=1e-12)
    assert (from_torch(AddOneInTorch(), n_states=3).mass_elsewhere(TOKENS) < 1e-12).all()


def test_a_first_token_of_its_own_moves_nothing() -> None:
    module = Positions(13)
    model = from_torch(module, n_states=3, bos=3)
    with_bos = torch.tensor(np.concatenate([np.full((5, 1), 3), TOKENS], axis=1))
    expected = torch.softmax(module(with_bos).logits.double(), dim=-1)[:, 1:].detach().numpy()
    np.testing.assert_allclose(model.predict_proba(TOKENS), expected, atol=1e-12)
    check_estimator(model, 3, length=12)


def test_beyond_its_length_it_reads_the_last_tokens_as_a_fresh_prefix() -> None:
    model = from_torch(Positions(6), n_states=3, max_length=6)
    assert reads_window(model)
    found = model.predict_proba(TOKENS)
    for n in range(7, 13):
        alone = model.predict_proba(TOKENS[:, n - 6 : n])[:, -1]
        np.testing.assert_allclose(found[:, n - 1], alone, atol=1e-12)
    check_estimator(model, 3, length=12)


def test_too_long_a_sequence_is_one_line_that_says_how_to_mend_it() -> None:
    with pytest.raises(ContractError, match=r"Positions: .* on 12 tokens .* max_length="):
        from_torch(Positions(6), n_states=3).predict_proba(TOKENS)


def test_dropout_is_off_and_the_module_stays_as_it_was() -> None:
    module = Recurrent(dropout=0.5).train()
    model = from_torch(module, n_states=3)
    np.testing.assert_array_equal(model.predict_proba(TOKENS), model.predict_proba(TOKENS))
    assert module.training
    assert module.dropout.training


def test_half_precision_states_its_tolerance() -> None:
    model = from_torch(Recurrent(), n_states=3, dtype=torch.bfloat16)
    assert stated_tolerance(model) == 0.02
    np.testing.assert_allclose(model.predict_proba(TOKENS).sum(axis=-1), 1.0, atol=1e-12)
    check_estimator(model, 3, length=12)


@pytest.mark.parametrize("output", ["probabilities", "log_probabilities"])
def test_other_outputs_are_understood(output: str) -> None:
    class Softmaxed(Recurrent):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            law = torch.softmax(super().forward(tokens).double(), dim=-1)
            return law if output == "probabilities" else law.log()

    expected = from_torch(Recurrent(), n_states=3).predict_proba(TOKENS)
    found = from_torch(Softmaxed(), n_states=3, output=output).predict_proba(TOKENS)  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    with pytest.raises(ContractError, match="output='logits'"):
        from_torch(Recurrent(), n_states=3, output=output).predict_proba(TOKENS)  # type: ignore[arg-type]


def test_small_batches_give_the_same() -> None:
    np.testing.assert_allclose(
        from_torch(Recurrent(), n_states=3, batch_size=2).predict_proba(TOKENS),
        from_torch(Recurrent(), n_states=3).predict_proba(TOKENS),
        atol=1e-6,
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"module": Recurrent}, "Recurrent is a class: give from_torch an instance"),
        ({"module": 3}, "takes a torch.nn.Module, not int"),
        ({"tokens": [0, 1]}, "3 different entries"),
        ({"tokens": [0, 1, 1]}, "3 different entries"),
        ({"tokens": [0, 1, -1]}, "each of tokens must be"),
        ({"bos": -1}, "bos must be"),
        ({"max_length": 0}, "max_length must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"output": "scores"}, "output must be one of logits"),
        ({"n_states": 1}, "n_states must be"),
    ],
)
def test_bad_input_is_one_line(given: dict[str, object], message: str) -> None:
    options: dict[str, object] = {"module": Recurrent(), "n_states": 3, **given}
    with pytest.raises(InputError, match=message):
        from_torch(options.pop("module"), **options)  # type: ignore[arg-type]


class LastOnly(Recurrent):
    """It predicts after the whole sequence only."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().forward(tokens)[:, -1]


def test_another_shape_is_said() -> None:
    with pytest.raises(ContractError, match=r"returned shape \(5, 3\) for tokens of shape \(5, 12\)"):
        from_torch(LastOnly(), n_states=3).predict_proba(TOKENS)


def test_a_study_takes_it() -> None:
    model = from_torch(AddOneInTorch(), n_states=3, name="mine")
    found = compare([model, "add-one"], chains=20, sequences_per_chain=1, length=8, decomposition_chains=0)
    regret = found.risk.query("estimator == 'mine' and metric == 'regret_nats' and context_length == 'mean'")
    assert abs(regret.estimate.item()) < 1e-12
    assert found.nearest.rule.iloc[0] in ("add-one", "add-constant:1")
