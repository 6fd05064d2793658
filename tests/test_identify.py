from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray

from icl_estimators import identify_estimator
from icl_estimators.engine.executors import one_thread
from icl_estimators.identify import main
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import sample_chains

Refused = Callable[..., str]
QUICK = ("--chains", "60", "--sequences-per-chain", "2", "--length", "15", "--jobs", "1", "--quiet")
trained = pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")


@pytest.fixture(autouse=True)
def threads():
    with one_thread():
        yield


class Gru:
    """A recurrent network, trained on fresh chains by the test."""

    name = "gru"
    n_states = 3

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.cell = torch.nn.GRU(3, 24, batch_first=True)
        self.head = torch.nn.Linear(24, 3)

    def logits(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.cell(torch.nn.functional.one_hot(tokens, 3).float())
        read: torch.Tensor = self.head(hidden)
        return read

    def train(self, steps: int, length: int) -> Gru:
        parameters = [*self.cell.parameters(), *self.head.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=1e-2)
        for step in range(steps):
            chains = range(64 * step, 64 * (step + 1))
            sample = sample_chains(chains, sequences_per_chain=1, length=length, seed=0, purpose="training")
            loss = torch.nn.functional.cross_entropy(
                self.logits(torch.tensor(sample.inputs)).transpose(1, 2), torch.tensor(sample.targets)
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return self

    @torch.inference_mode()
    def predict_proba(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        return torch.softmax(self.logits(torch.tensor(np.array(tokens))).double(), dim=-1).numpy()


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments, *QUICK]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@trained
def test_the_shipped_model_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys)
    assert text.startswith("Which estimator is transformer?")
    assert "lies elsewhere" in text
    assert "pseudo-count" in text
    assert "nats" in text


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ("add-constant:0.37", "add-constant:0.37"),
        pytest.param("unigram", "unigram", marks=pytest.mark.slow),
        pytest.param("add-one:order=2", "add-one:order=2", marks=pytest.mark.slow),
        pytest.param("bigram", "bigram", marks=pytest.mark.slow),
        pytest.param("recency:0.8", "recency:0.8", marks=pytest.mark.slow),
    ],
)
def test_a_rule_is_recognised_as_itself(spec: str, rule: str) -> None:
    found = identify_estimator(spec, chains=60, sequences_per_chain=2, length=15)
    nearest = found.nearest.query("measure == 'total_variation'").iloc[0]
    assert nearest.rule == rule
    assert nearest.estimate < 1e-4
    assert found.subjects == [f"{spec} (asked)"]


@pytest.mark.slow
def test_a_network_of_ones_own_is_placed_among_the_rules() -> None:
    found = identify_estimator(Gru().train(60, 15), chains=100, sequences_per_chain=2, length=15)
    nearest = found.nearest.query("measure == 'total_variation'").iloc[0]
    assert found.subjects == ["gru"]
    likeness = found.likeness.query("measure == 'total_variation' and context_length == 'mean'")
    pairs = likeness[(likeness.estimator == "gru") | (likeness.other == "gru")]
    assert nearest.estimate == pytest.approx(pairs.estimate.min(), rel=1e-12)
    assert 0.0 < nearest.estimate < 0.3
    assert "Which estimator is gru?" in found.summary()


@pytest.mark.slow
def test_the_csv_holds_the_numbers_of_the_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unigram", *QUICK, "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    found = identify_estimator("unigram", chains=60, sequences_per_chain=2, length=15)
    regret = next(row for row in rows if row["quantity"] == "regret" and row["context_length"] == "mean")
    table = found.risk.query("estimator == 'unigram (asked)' and metric == 'regret_nats' and context_length == 'mean'")
    assert float(regret["estimate"]) == table.estimate.item()
    assert {"total_variation", "kl_nats", "explained", "nearest_rule", "pseudo_count"} <= {
        row["quantity"] for row in rows
    }
    assert any(row["estimate"] == "inf" for row in rows)


@pytest.mark.slow
def test_a_folder_is_written_only_when_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["unigram", *QUICK]) == 0
    assert list(tmp_path.iterdir()) == []
    assert main(["unigram", *QUICK, "--out", "found", "--no-report"]) == 0
    record = json.loads((tmp_path / "found" / "run.json").read_text(encoding="utf-8"))
    assert record["command"].startswith("python -m icl_estimators.identify unigram")
    assert record["subjects"] == ["unigram (asked)"]
    table = pd.read_csv(tmp_path / "found" / "nearest.csv")
    assert table.rule.iloc[0] == "unigram"


def test_what_would_have_no_effect_is_refused(refused: Refused) -> None:
    assert "--no-report does not apply to a run without --out" in refused(main, "unigram", "--no-report")
    assert "did you mean unigram" in refused(main, "unigramm", *QUICK)


@pytest.mark.slow
def test_another_study_is_not_overwritten(tmp_path: Path, refused: Refused, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unigram", *QUICK, "--out", str(tmp_path), "--no-report"]) == 0
    capsys.readouterr()
    assert "--force" in refused(main, "bigram", *QUICK, "--out", str(tmp_path), "--no-report")
