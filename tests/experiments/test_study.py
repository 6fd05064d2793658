from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.study import Study, StudyOptions
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError
from strange_rules import Flat, Leaning


def study(**options: Any) -> Study:
    return Study(**{"estimators": (get("bigram"), get("add-one")), **options})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"chains": 1}, "chains must be at least 2: one chain has no standard error"),
        ({"chains": 0}, "chains must be an integer of at least 1, not 0"),
        ({"chains": 2.0}, "chains must be an integer, not 2.0"),
        ({"chains": True}, "chains must be an integer of at least 1, not True"),
        ({"sequences_per_chain": 0}, "sequences_per_chain must be an integer of at least 1, not 0"),
        ({"length": 0}, "length must be an integer of at least 1, not 0"),
        ({"seed": -1}, "seed must be an integer of at least 0, not -1"),
        ({"level": 1.5}, "level must lie strictly between 0 and 1, not 1.5"),
        ({"level": "0.9"}, "level must be a number above 0, not '0.9'"),
        ({"decomposition_chains": 1}, "decomposition_chains must be 0 .left out. or at least 2"),
        ({"decomposition_sequences": 1}, "decomposition_sequences must be at least 2: .*; 64 keeps"),
        ({"decomposition_sequences": -1}, "decomposition_sequences must be an integer of at least 0, not -1"),
        ({"estimators": ()}, "no estimators to compare"),
        ({"estimators": (Flat("a"), Flat("a")), "reference": "a"}, "two estimators are called a"),
        ({"reference": "unigram"}, "the reference unigram is not among the estimators: bigram, add-one"),
        ({"source": ChainLaw(4)}, "bigram is for 3 states, but the chains have 4"),
        (
            {"estimators": (Leaning("m:a", 0.1, "m"), Leaning("m:b", 0.1, "m"), Flat("m")), "reference": "m"},
            "two estimators are called m",
        ),
        (
            {"estimators": (Leaning("a", 0.1, "m"), Leaning("b", 0.1, "m"), Flat("m:recipe")), "reference": "m"},
            "two estimators are called m:recipe",
        ),
    ],
)
def test_a_design_that_cannot_be_run_says_why(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        study(**options)


def test_the_nested_design_may_be_left_out() -> None:
    assert study(decomposition_chains=0, decomposition_sequences=1).decomposition_chains == 0


def test_any_kind_of_integer_becomes_a_plain_one() -> None:
    made = study(chains=np.int64(7), length=np.int32(3), seed=np.uint8(1), level=np.float64(0.9))
    kinds = [type(value) for value in (made.chains, made.length, made.seed, made.level)]
    assert kinds == [int, int, int, float]
    assert (made.cells, made.n_states, made.exact_posterior) == (9, 3, True)


def test_the_mean_over_training_runs_has_a_row_after_the_last_of_them() -> None:
    runs = ("model:a", "model:b", "model:far=last:a", "model:far=last:b")
    made = study(
        estimators=(
            *(Leaning(name, 0.1, "model") for name in runs[:2]),
            get("add-one"),
            *(Leaning(name, 0.1, "model:far=last") for name in runs[2:]),
        ),
        reference="model",
    )
    assert made.checkpoints == runs
    assert made.recipes == {"model": runs[:2], "model:far=last": runs[2:]}
    assert made.names == ("model:a", "model:b", "model", "add-one", *runs[2:], "model:far=last")


def test_every_field_of_a_study_is_in_its_record() -> None:
    """A run is continued only where the records are equal: an option that is not in them would be overlooked."""
    changed = {
        "chains": 7,
        "sequences_per_chain": 8,
        "decomposition_chains": 9,
        "decomposition_sequences": 5,
        "length": 6,
        "seed": 4,
        "level": 0.5,
        "states": 4,
        "concentration": 2.0,
        "start": "stationary",
        "reference": "bigram",
        "exact_checks": False,
        "target_se": 0.01,
    }
    assert set(changed) == set(StudyOptions.__annotations__) - {
        "checkpoints",
        "device",
        "keep",
    }  # what is kept decides no number
    described = ("source", "source_description", "exact_posterior")
    also = dict.fromkeys(("states", "concentration", "start"), described)
    before = Study.build("bigram", warn=print, length=5).record()
    for name, value in changed.items():
        after = Study.build("bigram", warn=print, **{"length": 5, name: value}).record()  # type: ignore[typeddict-item]
        assert after[name] == value
        differing = {key for key in before if before[key] != after.get(key)}
        assert differing <= {name, "estimators", *also.get(name, ())}, name


def test_an_option_that_no_study_has_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="'chian' is not an option of a study: choose from chains, checkpoints, "):
        Study.build("nobody", warn=print, chian=3)  # type: ignore[call-arg]


def test_estimators_are_told_how_much_is_coming() -> None:
    class Told(Flat):
        def expect(self, sequences: int, length: int) -> None:
            self.told = (sequences, length)

    rule = Told("told")
    Study.build(
        [rule], warn=print, length=4, chains=3, sequences_per_chain=2, decomposition_chains=5, decomposition_sequences=7
    )
    assert rule.told == (3 * 2 + 5 * 7, 4)
