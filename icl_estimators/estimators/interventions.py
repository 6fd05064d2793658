"""Change a part of an estimator's mechanism: the result is an estimator like every other."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from icl_estimators.estimators.base import Estimator
from icl_estimators.estimators.capabilities import folded_of
from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
from icl_estimators.estimators.intervened_construction import IntervenedConstruction
from icl_estimators.heads import Head, require_head
from icl_estimators.text import exactly
from icl_estimators.validation import InputError

__all__ = ["CHANGES", "WITH_HEADS", "intervene"]

CHANGES = ("layer1", "layer2", "direct_path", "read_out_scale", "beta", "gamma")
"""What can be changed, under the names of :func:`intervene`; in a spec, ``transformer:layer1=previous``."""

WITH_HEADS = ("transformer", "construction", "construction-softmax")
"""Names of the registry that can be changed."""


def intervene(
    estimator: Estimator,
    *,
    layer1: Head | None = None,
    layer2: Head | None = None,
    direct_path: bool | None = None,
    read_out_scale: float | None = None,
    beta: float | None = None,
    gamma: float | None = None,
) -> Estimator:
    """Return an estimator with a part of its mechanism replaced; the estimator itself is not changed.

    The result passes :func:`icl_estimators.check_estimator`, shows its attention, and goes through every study. From a
    shell the same names are options of a spec: ``transformer:layer1=previous``, ``construction:30:gamma=2.2``.

    Parameters
    ----------
    estimator : Estimator
        A two-layer model of single heads that offers its folded numbers
        (:class:`icl_estimators.estimators.HasFolded`), such as `transformer`; the constructions; or what this function
        returned, to change more of it.
    layer1, layer2 : {"previous", "match", "uniform", "zero"}, optional
        What replaces the head of that layer. "previous": all weight on the token before, the first position on itself.
        "match": evenly on the positions whose predecessor is the current token, and as it was where there are none.
        "uniform": evenly on the whole prefix. "zero": the head adds nothing.
    direct_path : bool, optional
        False takes a position's own features out of its logits. A construction needs a read-out for this.
    read_out_scale : float, optional
        Of a trained model: multiplies what layer 2 adds to its logits; at least 0.
    beta : float, optional
        Of a construction: β > 0, the scale of both attentions; infinity is the limit.
    gamma : float, optional
        Of a construction: γ ≥ 0, its read-out. The prediction is then a softmax of γ(1[w = v] + f_w), at any β.

    Returns
    -------
    Estimator
        Its name says what was changed: `transformer:layer1=previous`, `construction-softmax:2.2:beta=30`.

    Raises
    ------
    InputError
        If nothing is changed, the estimator has no part of that name, or a value is out of its range.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> intervene(get("construction"), layer2="uniform").predict_proba([[0, 1, 0, 2]])[0, -1].tolist()
    [0.5, 0.25, 0.25]
    >>> intervene(get("construction"), beta=30, gamma=2.2).name
    'construction-softmax:2.2:beta=30'
    """
    given: dict[str, Any] = {
        "layer1": layer1,
        "layer2": layer2,
        "direct_path": direct_path,
        "read_out_scale": read_out_scale,
        "beta": beta,
        "gamma": gamma,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if not isinstance(estimator, Estimator):
        raise InputError(f"intervene takes an estimator, not {estimator!r}: make it with icl_estimators.get first")
    if not changes:
        raise InputError(f"nothing of {estimator.name} is to be changed: give one of {', '.join(CHANGES)}")
    if direct_path is not None and not isinstance(direct_path, bool):
        raise InputError(f"direct_path must be true or false, not {direct_path!r}")
    if isinstance(estimator, (Construction, ConstructionSoftmax, IntervenedConstruction)):
        return _construction(estimator, changes)
    return _model(estimator, changes)


def _construction(
    estimator: Construction | ConstructionSoftmax | IntervenedConstruction, changes: dict[str, Any]
) -> Estimator:
    _refuse(estimator, changes, ("read_out_scale",), "a trained model", "gamma")
    heads: dict[str, Any] = {"layer1": None, "layer2": None}
    rule: Construction | ConstructionSoftmax
    if isinstance(estimator, IntervenedConstruction):
        rule, heads = estimator.rule, {"layer1": estimator.layer1, "layer2": estimator.layer2}
    else:
        rule = estimator
    for layer in heads:
        require_head(changes.get(layer), layer)
        heads[layer] = changes.get(layer, heads[layer])
    if {"beta", "gamma", "direct_path"} & set(changes):
        rule = _scaled(rule, changes)
    if not any(heads.values()):
        return rule
    if isinstance(rule, ConstructionSoftmax) and rule.gamma_from == "default":
        rule = _scaled(rule, {"gamma": rule.gamma})  # the name then says it
    return IntervenedConstruction(rule, **heads)


def _scaled(rule: Construction | ConstructionSoftmax, changes: dict[str, Any]) -> Construction | ConstructionSoftmax:
    """Return a construction with other scales."""
    softmax = isinstance(rule, ConstructionSoftmax)
    beta = changes.get("beta", rule.head.beta if isinstance(rule, ConstructionSoftmax) else rule.beta)
    beta = None if isinstance(beta, float) and math.isinf(beta) and beta > 0 else beta
    if not softmax and "gamma" not in changes:
        if "direct_path" in changes:
            raise InputError(f"{rule.name} has no read-out, so no direct path: give gamma as well")
        return Construction(rule.n_states, beta)
    gamma = changes.get("gamma", rule.gamma if isinstance(rule, ConstructionSoftmax) else None)
    kept = rule.direct_path if isinstance(rule, ConstructionSoftmax) else True
    return ConstructionSoftmax(rule.n_states, gamma, direct_path=changes.get("direct_path", kept), beta=beta)


def _model(estimator: Estimator, changes: dict[str, Any]) -> Estimator:
    from icl_estimators.estimators.intervened import Intervened
    from icl_estimators.transformer import Intervention

    if not isinstance(estimator, Intervened) and folded_of(estimator) is None:
        raise InputError(
            f"{estimator.name} has no heads to change: interventions need the constructions, or a model of two layers "
            "of one head with an attribute `folded`"
        )
    _refuse(estimator, changes, ("beta", "gamma"), "the constructions", "read_out_scale")
    model, before = (
        (estimator.model, estimator.intervention) if isinstance(estimator, Intervened) else (estimator, Intervention())
    )
    change = replace(before, **changes)
    shown = {
        "layer1": change.layer1,
        "layer2": change.layer2,
        "direct_path": None if change.direct_path else "false",
        "read_out_scale": None if change.read_out_scale == 1.0 else exactly(change.read_out_scale),
    }
    parts = [f"{key}={value}" for key, value in shown.items() if value is not None]
    return Intervened(model, replace(change, name=":".join(parts) or "intact"))


def _refuse(estimator: Estimator, changes: dict[str, Any], names: tuple[str, ...], whose: str, instead: str) -> None:
    for name in names:
        if name in changes:
            raise InputError(f"{estimator.name}: {name} is a part of {whose}: leave it out, or give {instead}")
