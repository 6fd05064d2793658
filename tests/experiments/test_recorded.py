from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_estimators.api import compare, compare_observed, effective_smoothing
from icl_estimators.experiments.recorded import given_options, refuse_other_findings
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError

SMALL: dict[str, Any] = {"chains": 20, "sequences_per_chain": 2, "length": 6}
COIN = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 0]), np.array([1, 0, 1])))


def written(result: Any, folder: Path) -> dict[str, Any]:
    result.save(folder)
    options: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))["options"]
    return options


def same(one: Any, other: Any) -> None:
    assert one.tables.keys() == other.tables.keys()
    for name in one.tables:
        assert one.tables[name].frame().equals(other.tables[name].frame()), name


def test_a_comparison_runs_again_from_its_record(tmp_path: Path) -> None:
    first = compare(decomposition_chains=4, decomposition_sequences=3, seed=5, concentration=0.5, **SMALL)
    same(compare(**written(first, tmp_path)), first)


def test_a_study_of_observed_data_runs_again_from_its_record(tmp_path: Path) -> None:
    first = compare_observed(COIN, "add-one,uniform", pool=True, reference="uniform")
    options = written(first, tmp_path)
    same(compare_observed(COIN, **options), first)
    other = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 1]), np.array([1, 0, 1])))
    with pytest.raises(InputError, match=r"the options are of another study: data_sha256 was .* and is .* now"):
        compare_observed(other, **options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'pol'"):
        compare_observed(COIN, "add-one", pol=True)


def test_a_smoothing_study_runs_again_from_its_record(tmp_path: Path) -> None:
    first = effective_smoothing("add-constant:0.4", by=["overall"], families=["affine"], interventions=False, **SMALL)
    same(effective_smoothing(**written(first, tmp_path)), first)


@pytest.mark.skipif(shipped_checkpoint(3) is None, reason="no trained model ships for three states")
def test_other_weights_are_refused(tmp_path: Path) -> None:
    options = written(compare("transformer", decomposition_chains=0, **SMALL), tmp_path)
    options["weights"]["transformer"] = "0" * 64
    with pytest.raises(InputError, match=r"weights of transformer was 000.* \(omit weights from the options"):
        compare(**options)
    del options["weights"]
    compare(**options)


def test_checkpoints_of_a_record_are_names_so_that_files_must_be_given() -> None:
    runs = {"transformer": ["transformer:a", "transformer:b"]}
    record = {"estimators": ["transformer:a", "transformer:b", "add-one"], "recipes": runs}
    with pytest.raises(InputError, match=r"read checkpoints, transformer:a, transformer:b: give their files"):
        given_options({**record, "checkpoints": ["transformer:a", "transformer:b"]})
    given, found = given_options({**record, "checkpoints": ["a.safetensors", "b.safetensors"]})
    assert given == {"estimators": ["transformer", "add-one"], "checkpoints": ["a.safetensors", "b.safetensors"]}
    assert found == {"recipes": runs}


def test_plain_options_are_left_as_they_are() -> None:
    options = {"estimators": "add-one", "checkpoints": "a.safetensors", "chains": 3}
    assert given_options(options) == (options, {})
    refuse_other_findings({"labels": ("a",)}, {"labels": ["a"]})  # JSON has lists
    with pytest.raises(InputError, match=r"kernel was .*transformer.* and is not recorded now"):
        refuse_other_findings({"kernel": ["transformer"]}, {})
    refuse_other_findings({"kernel": ["transformer"]}, {}, but=["kernel"])
