"""The options of a study as run.json has them, given again: some are what was asked for, the rest is what was found.

What was found (SHA-256 of weights, training runs, tolerances, engines, the law in words, the digest of the data) is not
an option. It is compared with what the new study finds, so that the same options never stand for other weights or data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from icl_estimators.validation import InputError

__all__ = ["FINDINGS", "given_options", "refuse_other_findings"]

FINDINGS = frozenset(
    {"source", "source_description", "exact_posterior", "recipes", "weights", "trained", "tolerances", "kernel"}
    | {"data", "data_sha256", "labels", "n_sequences", "n_predictions", "longest_history"}
)
"""What a record holds that is no option."""


def given_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide options into those to be used and, if they come from a record, what was found.

    Parameters
    ----------
    options : mapping of str to object
        Of a study, or the entry `options` of run.json.

    Returns
    -------
    given : dict
        Without what was found. In the `estimators` of a record, the training runs of a recipe are the recipe's spec
        again; its `checkpoints` are the runs' names, not files, and are left out.
    found : dict
        Empty if the options do not come from a record.

    Raises
    ------
    InputError
        If a record names checkpoints: their files must be given anew.

    Examples
    --------
    >>> given_options({"chains": 5, "exact_posterior": True, "checkpoints": []})
    ({'chains': 5}, {'exact_posterior': True})
    """
    found = {name: value for name, value in options.items() if name in FINDINGS}
    given = {name: value for name, value in options.items() if name not in FINDINGS}
    if not found:
        return given, found
    runs = {run: recipe for recipe, names in found.get("recipes", {}).items() for run in names}
    estimators = given.get("estimators")
    if isinstance(estimators, (list, tuple)):
        given["estimators"] = list(
            dict.fromkeys(runs.get(rule, rule) if isinstance(rule, str) else rule for rule in estimators)
        )
    files = given.get("checkpoints", ())
    names = [name for name in ([files] if isinstance(files, str) else files) if name in runs]
    if names:
        raise InputError(
            f"these options are of a study that read checkpoints, {', '.join(names)}: give their files in checkpoints"
        )
    if not files:
        given.pop("checkpoints", None)
    return given, found


def refuse_other_findings(found: Mapping[str, Any], record: Mapping[str, Any], but: Iterable[str] = ()) -> None:
    """Refuse a study that finds something else than a record says.

    Parameters
    ----------
    found : mapping of str to object
        As :func:`given_options` returns it.
    record : mapping of str to object
        Of the new study.
    but : iterable of str
        What need not agree.

    Raises
    ------
    InputError
        Names the first that differs.
    """
    for key, value in found.items():
        if key in but:
            continue
        name, now = key, record.get(key)
        if _plain(now) != _plain(value):
            if isinstance(value, Mapping) and isinstance(now, Mapping):
                part = next(part for part in {**value, **now} if _plain(value.get(part)) != _plain(now.get(part)))
                name, value, now = f"{key} of {part}", value.get(part), now.get(part)
            raise InputError(
                f"the options are of another study: {name} was {_short(value)} and is {_short(now)} now (omit "
                f"{key} from the options to run it all the same)"
            )


def _plain(value: Any) -> Any:
    """Return lists for tuples and plain dicts, as JSON has them."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _short(value: Any) -> str:
    text = "not recorded" if value is None else " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"
