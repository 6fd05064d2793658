from __future__ import annotations

import numpy as np
import pytest

from analysis.band_coverage import coverage
from icl_estimators.band_coverage import _measured, band_note, measured_coverage
from icl_estimators.validation import InputError


def test_the_nearest_design_is_taken():
    for asked, nearest in (
        ((100, 200, 1), (100, 200, 1)),
        ((5, 45, 1), (6, 50, 1)),
        ((400, 90_000, 1), (100, 2000, 1)),
    ):
        found = measured_coverage("kl_nats", length=asked[0], chains=asked[1], sequences_per_chain=asked[2])
        assert (found.length, found.chains, found.sequences_per_chain) == nearest
    nested = measured_coverage("bias_squared", length=100, chains=500, sequences_per_chain=64)
    assert (nested.length, nested.chains, nested.sequences_per_chain) == (100, 200, 64)


def test_the_note_differs_with_the_design_and_the_metric():
    notes = {
        band_note(metric, length=length, chains=chains)
        for metric in ("kl_nats", "total_variation")
        for length in (6, 100)
        for chains in (50, 1000)
    }
    assert len(notes) == 8
    found = measured_coverage("kl_nats", length=100, chains=200)
    note = band_note("kl_nats", length=100, chains=200)
    assert note.startswith("95 % bands over 100 lengths from 200 chains × 1 have coverage ")
    for name, share in found.shares.items():
        assert f"{share:.2f} ({name})" in note


def test_what_was_not_measured_says_so():
    assert measured_coverage("split_weight", length=3, chains=3) is None
    assert "not been measured" in band_note("split_weight", length=3, chains=3)


def test_the_table_is_of_shares_and_agrees_with_what_is_known():
    for designs in _measured().values():
        for design in designs:
            assert all(0 <= share <= 1 for share in design.shares.values())
            assert design.studies >= 200
    for chains, share in ((50, 0.55), (200, 0.80), (1000, 0.90)):
        found = measured_coverage("kl_nats", length=100, chains=chains).shares["add-one"]
        assert found == pytest.approx(share, abs=0.06)


def test_normal_values_are_covered_as_often_as_the_band_says():
    values = np.random.default_rng(0).normal(size=(4000, 4))
    assert coverage(values, 50, studies=100) == pytest.approx(0.95, abs=0.08)
    assert coverage(values, 50, studies=20) == coverage(values, 50, studies=20)


def test_bad_input_is_named():
    with pytest.raises(InputError, match="length"):
        band_note("kl_nats", length=0, chains=2)
    with pytest.raises(InputError, match="chains"):
        measured_coverage("kl_nats", length=1, chains=0)
    with pytest.raises(InputError, match="sequences_per_chain"):
        measured_coverage("kl_nats", length=1, chains=1, sequences_per_chain=0)
