from __future__ import annotations

import numpy as np
import pytest
import torch

from icl_estimators.api import compare
from icl_estimators.estimators import ContractError
from icl_estimators.estimators.model import from_torch
from icl_estimators.experiments.elsewhere import mass_elsewhere
from icl_estimators.experiments.study import Study
from strange_rules import Flat

SMALL = {"chains": 10, "sequences_per_chain": 1, "length": 4, "decomposition_chains": 0}


class Telling(Flat):
    def mass_elsewhere(self, tokens: np.ndarray) -> np.ndarray:
        return np.full(np.shape(tokens), 0.25)


def test_the_mass_on_other_entries_is_recorded_and_said() -> None:
    found = compare([Telling("telling"), "add-one"], **SMALL)  # type: ignore[arg-type]
    assert found.run["mass_elsewhere"] == {"telling": 0.25}
    assert "telling gives 25 % of its probability to entries that stand for no state" in found.summary()


def test_a_module_with_the_states_alone_has_none_elsewhere() -> None:
    study = Study.build([from_torch(torch.nn.Embedding(3, 3), n_states=3)], warn=print, **SMALL)  # type: ignore[arg-type]
    assert mass_elsewhere(study)["Embedding"] == pytest.approx(0.0, abs=1e-12)
    wide = from_torch(torch.nn.Embedding(6, 6), n_states=3, tokens=[0, 2, 4], name="wide")
    study = Study.build([wide], warn=print, **SMALL)  # type: ignore[arg-type]
    assert 0.05 < mass_elsewhere(study)["wide"] < 0.95


def test_a_method_that_fails_or_gives_another_shape_is_named() -> None:
    class Failing(Flat):
        def mass_elsewhere(self, tokens: np.ndarray) -> float:
            raise LookupError("lost")

    class Wrong(Flat):
        def mass_elsewhere(self, tokens: np.ndarray) -> float:
            return 0.5

    for rule, message in ((Failing(), "failed: LookupError: lost"), (Wrong(), r"returned shape \(\), not \(20, 4\)")):
        with pytest.raises(ContractError, match=rf"mine: mass_elsewhere\(tokens\) {message}"):
            mass_elsewhere(Study.build([rule], warn=print, **SMALL))  # type: ignore[arg-type]
