from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from icl_estimators.estimators import get
from icl_estimators.experiments.training_curves import training_table
from icl_estimators.resources import shipped_checkpoint

SHIPPED = shipped_checkpoint(3)
trained = pytest.mark.skipif(SHIPPED is None, reason="no trained model ships for three states")


@trained
def test_the_metrics_beside_the_weights_are_the_table() -> None:
    table = training_table([get("add-one"), get("transformer")])
    assert table is not None
    frame = table.frame()
    assert set(frame.quantity) == {"loss_nats", "regret_nats", "learning_rate"}
    last = frame[(frame.quantity == "regret_nats")].iloc[-1]
    assert (last.estimator, last.step) == ("transformer", 8000)
    assert last.value == pytest.approx(0.0315, abs=0.001)
    assert frame.value.notna().all()  # the first loss is not known: it has no row


def test_rules_have_no_training() -> None:
    assert training_table([get("add-one")]) is None


@trained
@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "step,loss_nats\nx,y\n", None])
def test_another_file_of_that_name_is_left_alone(tmp_path: Path, text: str | None) -> None:
    assert SHIPPED is not None
    for suffix in (".safetensors", ".json"):
        shutil.copy(SHIPPED.with_suffix(suffix), tmp_path / f"mine{suffix}")
    if text is not None:
        (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    assert training_table([get("transformer", checkpoint=tmp_path / "mine.safetensors")]) is None


@trained
def test_a_model_that_was_changed_afterwards_has_no_curve() -> None:
    table = training_table([get("transformer:layer1=previous"), get("transformer")])
    assert table is not None
    assert set(table.frame().estimator) == {"transformer"}
    assert training_table([get("transformer:layer2=zero")]) is None
