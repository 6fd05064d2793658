"""One value for each chain: their means are those of risk.csv, whatever did the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_estimators import compare
from icl_estimators.evaluate import main
from icl_estimators.experiments.kept_chains import KeptChains
from icl_estimators.validation import InputError

DESIGN: dict[str, Any] = {"chains": 37, "sequences_per_chain": 2, "length": 6, "decomposition_chains": 0}
RULES = "bigram,add-one,unigram"


def test_the_means_of_the_chains_are_those_of_risk() -> None:
    result = compare(RULES, keep=("chains",), **DESIGN)
    frame = result.chains
    assert list(frame) == ["estimator", "chain", "metric", "context_length", "estimate"]
    assert set(frame.context_length) == {"mean"}
    risk = result.risk[result.risk.context_length == "mean"].set_index(["estimator", "metric"])
    groups = list(frame.groupby(["estimator", "metric"]))
    assert len(groups) == len(risk) - 3  # kl_finite_nats is a ratio of means, and has no value for each chain
    for key, rows in groups:
        assert rows.chain.tolist() == list(range(37))
        expected = risk.loc[key]
        np.testing.assert_allclose(rows.estimate.mean(), expected.estimate, rtol=1e-12, atol=1e-14)
        if np.isfinite(expected.estimate) and key[1] != "p_infinite":  # whose interval is Wilson's
            se = rows.estimate.std() / np.sqrt(37)
            np.testing.assert_allclose(se, expected.se, rtol=1e-9, atol=1e-15)


def test_nothing_else_changes_and_nothing_is_kept_unasked() -> None:
    plain, kept = compare(RULES, **DESIGN), compare(RULES, keep="chains", **DESIGN)
    assert "chains" not in plain.tables
    assert "keep" not in plain.run["options"]
    assert kept.run["options"]["keep"] == ["chains"]
    assert set(kept.tables) == {*plain.tables, "chains"}
    assert all(getattr(kept, name).equals(getattr(plain, name)) for name in plain.tables)


@pytest.mark.slow
def test_the_values_are_the_same_bits_for_any_number_of_processes() -> None:
    design = {**DESIGN, "chains": 700, "sequences_per_chain": 10, "length": 100}
    one, two = (compare("bigram,add-one", keep=("chains",), jobs=jobs, **design) for jobs in (1, 2))
    assert one.chains.equals(two.chains)


@pytest.mark.slow
def test_a_resumed_study_has_every_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icl_estimators.engine import running

    command = ["--estimators", RULES, "--chains", "37", "--sequences-per-chain", "2", "--length", "6", "--jobs", "1"]
    command += ["--decomposition-chains", "0", "--no-report", "--quiet", "--keep", "chains"]
    monkeypatch.setattr(
        running, "blocks", lambda chains, *rest: [range(a, min(a + 5, chains)) for a in range(0, chains, 5)]
    )
    assert main([*command, "--out", str(tmp_path / "whole")]) == 0

    from icl_estimators.engine.block_store import BlockStore

    save, saved = BlockStore.save, []

    def stop(store: BlockStore[Any], chains: range, part: Any) -> None:
        save(store, chains, part)
        saved.append(chains)
        if len(saved) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(BlockStore, "save", stop)
    assert main([*command, "--out", str(tmp_path / "stopped")]) == 130
    monkeypatch.setattr(BlockStore, "save", save)
    assert main([*command, "--out", str(tmp_path / "stopped"), "--resume"]) == 0
    whole, again = ((tmp_path / name / "chains.csv").read_bytes() for name in ("whole", "stopped"))
    assert whole == again


def test_only_chains_can_be_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="'prefixes' cannot be kept: choose from chains"):
        compare(RULES, keep=("prefixes",), **DESIGN)
    assert main(["--keep", "prefixes", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == "evaluate: 'prefixes' cannot be kept: choose from chains\n"
    assert main(["--keep", "chains", "--dataset", "elnino", "--out", str(tmp_path / "out")]) == 2
    assert "--keep does not apply to observed sequences" in capsys.readouterr().err


def test_values_of_other_things_are_not_merged() -> None:
    one, other = (KeptChains(((name, "kl_nats"),), (np.zeros((2, 1)),)) for name in "ab")
    with pytest.raises(InputError, match="values of different estimators or metrics"):
        one.merge(other)
