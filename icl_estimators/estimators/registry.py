"""Estimators by name: the spec grammar and the registry.

A spec is ``name[:value][:key=value…]``: ``add-one``, ``add-constant:0.5``, ``construction:30``,
``construction-softmax:2.2:direct_path=false``. The part before the first colon is a name of the registry, or a
module: ``package.module:attribute`` or ``model.py:attribute`` is your own object, or a class or factory that makes it.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from icl_estimators.estimators.base import ContractError, Estimator, UnsupportedStates
from icl_estimators.estimators.checkpoint_labels import label_checkpoints
from icl_estimators.estimators.interventions import CHANGES, WITH_HEADS, intervene
from icl_estimators.estimators.misfits import misfit
from icl_estimators.estimators.own_modules import import_own, is_file
from icl_estimators.estimators.training_runs import pool_runs
from icl_estimators.validation import InputError, positive_int

__all__ = [
    "BUILT_IN_NAMES",
    "DEFAULT_SPECS",
    "REGISTRY",
    "TUNED_SPECS",
    "Spec",
    "factory_module",
    "family_of",
    "get",
    "get_all",
    "is_own",
    "is_rule",
    "parse_spec",
    "rules_record",
    "split_specs",
]

_HERE = "icl_estimators.estimators"

REGISTRY: dict[str, str] = {
    "transformer": f"{_HERE}.transformer:Transformer",
    "construction": f"{_HERE}.construction:Construction",
    "construction-softmax": f"{_HERE}.construction:ConstructionSoftmax",
    "bigram": f"{_HERE}.counting:Bigram",
    "add-one": f"{_HERE}.counting:AddOne",
    "add-constant": f"{_HERE}.counting:AddConstant",
    "krichevsky-trofimov": f"{_HERE}.counting:KrichevskyTrofimov",
    "bayes": f"{_HERE}.counting:Bayes",
    "recency": f"{_HERE}.recency:Recency",
    "unigram": f"{_HERE}.unigram:Unigram",
    "uniform": f"{_HERE}.uniform:Uniform",
}
"""Names to ``"module:factory"``, so that torch is imported only where a transformer is asked for."""

TUNED_SPECS = (
    "transformer",
    "construction",
    "construction-softmax:tuned",
    "construction-softmax:tuned:direct_path=false",
    "bigram",
    "add-one",
    "unigram",
    "uniform",
)
"""What the command lines compare when nothing is named and chains have a known law and length, which γ is tuned to."""

DEFAULT_SPECS = tuple(
    {
        "construction-softmax:tuned": "construction-softmax:0.645",
        "construction-softmax:tuned:direct_path=false": "construction-softmax:2.21:direct_path=false",
    }.get(spec, spec)
    for spec in TUNED_SPECS
)
"""What they compare for a prompt or observed sequences: the numbers that the plain names stand for, in the names."""


BUILT_IN_NAMES = frozenset(REGISTRY) - {"transformer"}
"""Names that no estimator of your own may have. A trained model of your own may well be called transformer."""


@dataclass(frozen=True)
class Spec:
    """A parsed spec.

    Attributes
    ----------
    text : str
        As it was written.
    head : str
        Registry name or module.
    value : object or None
        The unnamed value, or the attribute's name where `head` is a module.
    options : dict of str to object
        The named ones; numbers and true/false are converted.
    """

    text: str
    head: str
    value: Any
    options: dict[str, Any]


def parse_spec(text: str) -> Spec:
    """Parse ``name[:value][:key=value…]``.

    Raises
    ------
    InputError
        If a part is empty, a key comes twice, or a value comes after a key.

    Examples
    --------
    >>> parsed = parse_spec("construction-softmax:2.2:direct_path=false")
    >>> parsed.head, parsed.value, parsed.options
    ('construction-softmax', 2.2, {'direct_path': False})
    """
    head, *parts = text.strip().split(":")
    if not head:
        raise InputError(f"empty estimator name in {text!r}: choose from {', '.join(REGISTRY)}")
    value: Any = None
    options: dict[str, Any] = {}
    for position, part in enumerate(parts):
        key, equals, raw = part.partition("=")
        if not part or (equals and not (key and raw)):
            raise InputError(f"{text!r} has an empty part after a colon: write {_usage(head)}")
        if not equals:
            if position > 0:
                raise InputError(f"{text!r} has a second value {part!r}: write {_usage(head)}")
            value = _literal(part) if head in REGISTRY else part
        elif key in options:
            raise InputError(f"{text!r} gives {key} twice")
        else:
            options[key] = _literal(raw)
    return Spec(text.strip(), head, value, options)


def split_specs(text: str) -> list[str]:
    """Split a comma-separated list of specs.

    Raises
    ------
    InputError
        If nothing is named, or one is named twice.

    Examples
    --------
    >>> split_specs("bigram, add-constant:0.5")
    ['bigram', 'add-constant:0.5']
    """
    specs = [part.strip() for part in text.split(",") if part.strip()]
    if not specs:
        raise InputError(f"no estimator is given: choose from {', '.join(REGISTRY)}")
    repeated = sorted({spec for spec in specs if specs.count(spec) > 1})
    if repeated:
        raise InputError(f"{repeated[0]} is given twice: give each estimator once")
    return specs


def get(
    spec: str,
    *,
    n_states: int = 3,
    concentration: float = 1.0,
    checkpoint: str | os.PathLike[str] | None = None,
    **defaults: Any,
) -> Estimator:
    """Make an estimator from its spec.

    Parameters
    ----------
    spec : str
        ``name[:value][:key=value…]``, or ``package.module:attribute[:key=value…]``. The parts that
        :func:`icl_estimators.intervene` can change are options of `transformer` and the constructions:
        ``transformer:layer1=previous``, ``construction:30:gamma=2.2``.
    n_states : int
        K ≥ 2.
    concentration : float
        α of the prior, for estimators that know it (`bayes`).
    checkpoint : path, optional
        Weights, for estimators that have some (`transformer`); by default those that ship for this K.
    **defaults
        Further arguments, such as ``device``, for factories that take them; the spec's own options win. ``tune`` is
        what ``construction-softmax:tuned`` asks for its γ.

    Returns
    -------
    Estimator

    Raises
    ------
    InputError
        If the spec is malformed, the name is unknown (the nearest is named, and all are listed), an option is
        unknown or wrong, a value is missing, a module or factory of your own fails, or the estimator cannot take
        `n_states`.
    ContractError
        If a module's attribute is not an Estimator.

    Examples
    --------
    >>> get("add-constant:0.5").predict_proba([[0, 1, 0]])[0, -1].tolist()
    [0.2, 0.6, 0.2]
    """
    n_states = positive_int(n_states, "n_states", at_least=2)
    parsed = parse_spec(spec)
    offered = {**defaults, "n_states": n_states, "concentration": concentration, "checkpoint": checkpoint}
    if parsed.head in REGISTRY:
        module, _, attribute = REGISTRY[parsed.head].partition(":")
        return _build(getattr(importlib.import_module(module), attribute), parsed, offered, parsed.value)
    return _own(parsed, offered)


def get_all(
    specs: Iterable[str] | None,
    *,
    n_states: int,
    warn: Callable[[str], None],
    checkpoints: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> list[Estimator]:
    """Make several estimators; those of the default list that cannot take K are left out, with a warning.

    Parameters
    ----------
    specs : iterable of str or None
        None is the default list, with tuned γ where `options` have a ``tune``. A spec that is named must work.
    n_states : int
        K ≥ 2.
    warn : callable
        Takes one line for each estimator that is left out, and for each reason why checkpoints are not pooled.
    checkpoints : sequence of paths
        Weights for `transformer`, FILE or NAME=FILE. With several, each is an estimator of its own,
        `transformer:<file stem>`; those that are training runs of one recipe have its name as attribute `recipe`.
    **options
        As for :func:`get`.

    Raises
    ------
    InputError
        As :func:`get`, for specs that were named; if two have the same name; or as
        :func:`icl_estimators.estimators.checkpoint_labels.label_checkpoints`.

    Examples
    --------
    >>> [rule.name for rule in get_all(["bigram", "add-one"], n_states=3, warn=print)]
    ['bigram', 'add-one']
    """
    made: list[Estimator] = []
    files = label_checkpoints(checkpoints)
    default = DEFAULT_SPECS if options.get("tune") is None else TUNED_SPECS
    for spec in default if specs is None else specs:
        weights: Sequence[Any] = files if parse_spec(spec).head == "transformer" and files else (None,)
        runs: dict[str, Any] = {}
        name = spec
        try:
            for file in weights:
                estimator = get(spec, n_states=n_states, checkpoint=None if file is None else file.path, **options)
                name = estimator.name
                if file is not None and file.label is not None:
                    estimator.name = f"{name}:{file.label}"
                    runs[file.label] = estimator
                made.append(estimator)
            if len(runs) > 1:
                pool_runs(runs, name, warn)
        except UnsupportedStates as error:
            if specs is not None or weights[0] is not None:  # a file was named: it is meant to be used
                raise
            warn(f"left out: {error}")
    names = [estimator.name for estimator in made]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two estimators are called {name}: give each once")
    return made


def is_rule(estimator: object) -> bool:
    """Say whether an estimator is one of the package's fixed rules, rather than a model or an estimator of your own.

    Its class decides, not its name: those that :data:`REGISTRY` lists, without `transformer`.

    Examples
    --------
    >>> is_rule(get("add-one")), is_rule(get("construction")), is_rule(get("transformer"))
    (True, True, False)
    """
    kind = type(estimator)
    return f"{kind.__module__}:{kind.__qualname__}" in {REGISTRY[name] for name in BUILT_IN_NAMES}


def is_own(estimator: object) -> bool:
    """Say whether an estimator is a person's own: not of this package, or a module of theirs that it wraps.

    Examples
    --------
    >>> is_own(get("add-one")), is_own(get("transformer"))
    (False, False)
    """
    if type(estimator).__module__.partition(".")[0] != __name__.partition(".")[0]:
        return True
    return bool(getattr(type(estimator), "wraps_own", False))


def family_of(estimator: object) -> str | None:
    """Return the family of a rule: rules of one family differ only in a fitted number. None for what is no rule.

    Examples
    --------
    >>> family_of(get("add-one")), family_of(get("add-constant:0.37")), family_of(get("transformer"))
    ('add-constant', 'add-constant', None)
    """
    family: object = getattr(estimator, "family", None) if is_rule(estimator) else None
    return family if isinstance(family, str) else None


def rules_record(estimators: Iterable[object]) -> dict[str, dict[str, Any]]:
    """Return what run.json says of the rules among some estimators, by name.

    Their family, what readers call them, and whether they cannot give probability 0 (`positive`).

    Two rules never have the same display name: where rounding would make it so, the spec is added.

    Examples
    --------
    >>> rules_record([get("construction-softmax:2.217:direct_path=false"), get("transformer")])
    {'construction-softmax:2.217:direct_path=false': {'family': 'construction-softmax:direct_path=false', \
'positive': True, 'display': 'softmax of frequencies, γ = 2.22'}}
    """
    rules: dict[str, Any] = {str(getattr(rule, "name", "")): rule for rule in estimators if is_rule(rule)}
    shown = [rule.display for rule in rules.values()]
    return {
        name: {
            "family": rule.family,
            "positive": rule.positive,
            "display": rule.display if shown.count(rule.display) == 1 else f"{rule.display} ({name})",
        }
        for name, rule in rules.items()
    }


_made_in: dict[int, tuple[Callable[[], Any], str]] = {}  # by identity: how to find the object, and its spec's module


def factory_module(estimator: object) -> str | None:
    """Return the module that the spec of an estimator of your own names; None if it was not made from a spec."""
    found = _made_in.get(id(estimator))
    return found[1] if found is not None and found[0]() is estimator else None


def _remember(estimator: Any, module: str) -> None:
    try:
        find: Callable[[], Any] = weakref.ref(estimator)
    except TypeError:  # its class has no place for such references
        find = lambda: estimator  # noqa: E731
    _made_in[id(estimator)] = (find, module)


def _own(parsed: Spec, offered: dict[str, Any]) -> Estimator:
    if not isinstance(parsed.value, str):
        if is_file(parsed.head):
            raise InputError(f"{parsed.text}: name what makes the estimator too, as in {parsed.head}:make")
        raise _unknown(parsed.head)
    module = import_own(parsed.head, parsed.text)
    if module is None:
        raise _unknown(parsed.head)
    if not hasattr(module, parsed.value):
        what = parsed.head if is_file(parsed.head) else f"module {parsed.head}"
        raise InputError(f"{parsed.text}: {what} has no attribute {parsed.value}{_offers(module)}")
    target = getattr(module, parsed.value)
    made = target
    if inspect.isclass(target) or not hasattr(target, "predict_proba"):
        if not (inspect.isclass(target) or inspect.isroutine(target)) and (fault := misfit(target)):
            raise ContractError(f"{parsed.text} {fault}")
        if not callable(target):
            raise ContractError(f"{parsed.text} is neither an estimator nor a class or function that makes one")
        try:
            made = _build(target, parsed, offered, None)
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"{parsed.text}: calling it failed: {type(error).__name__}: {error}") from error
    elif parsed.options:
        raise InputError(f"{parsed.text}: the object already exists and takes no options")
    if not isinstance(made, Estimator):
        fault = misfit(made) or "lacks name, n_states or predict_proba"
        raise ContractError(f"{parsed.text}: {made!r:.80} {fault}".replace("\n", " "))
    _remember(made, module.__name__)
    if made.n_states != offered["n_states"]:
        raise UnsupportedStates(
            f"{parsed.text} is for {made.n_states} states, but {offered['n_states']} were asked for"
        )
    return made


def _build(factory: Callable[..., Any], parsed: Spec, offered: dict[str, Any], value: Any) -> Any:
    """Call `factory` with what its signature takes of `offered`, the spec's value and the spec's options."""
    try:
        parameters = dict(inspect.signature(factory).parameters)
    except ValueError:
        parameters = {}  # a callable without a signature takes nothing of ours
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    named = [key for key, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    # Options of the study are not options of a spec, and `name` is how a caller labels a row.
    reserved = {"n_states", "concentration", "name", "tune"}
    changes: dict[str, Any] = {}  # of the mechanism, after it is made
    arguments = {key: item for key, item in offered.items() if key in named or (takes_any and key == "n_states")}
    own = [key for key in named if key not in reserved]
    positional = [key for key in own if parameters[key].kind is not inspect.Parameter.KEYWORD_ONLY]
    if value is not None:
        if not positional:
            raise InputError(f"{parsed.text}: {parsed.head} takes no value: write {_usage(parsed.head)}")
        arguments[positional[0]] = value
    changeable = CHANGES if parsed.head in WITH_HEADS else ()
    for key, item in parsed.options.items():
        if key in changeable and key not in own:
            changes[key] = item
            continue
        if key not in own and (key in reserved or not takes_any):
            choices = ", ".join(dict.fromkeys((*own, *changeable))) or "none"
            raise InputError(f"{parsed.text}: unknown option {key!r} (options: {choices})")
        if value is not None and key == positional[0]:
            raise InputError(f"{parsed.text} gives {key} twice")
        arguments[key] = item
    for key in own:
        if key not in arguments and parameters[key].default is inspect.Parameter.empty:
            usage = _usage(parsed.head) if parsed.head in REGISTRY else f"{parsed.text}:{key}=…"
            raise InputError(f"{parsed.text} needs a value for {key}: write {usage}")
    made = factory(**arguments)
    return intervene(made, **changes) if changes else made


_USAGE = {
    "add-one": "add-one or add-one:order=2",
    "add-constant": "add-constant:0.5 or add-constant:0.5:order=2",
    "krichevsky-trofimov": "krichevsky-trofimov or krichevsky-trofimov:order=2",
    "recency": "recency:0.9",
    "transformer": "transformer, transformer:far=last or transformer:layer1=previous",
    "construction": "construction or construction:30",
    "construction-softmax": "construction-softmax, construction-softmax:2.2, …:tuned, …:beta=30 or …:direct_path=false",
    "bigram": "bigram, bigram:unseen=prefix or bigram:order=2",
}


def _usage(head: str) -> str:
    return _USAGE.get(head, head if head in REGISTRY else f"{head}:attribute")


def _offers(module: ModuleType) -> str:
    """Say what a module has of its own that could make an estimator."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (callable(value) or hasattr(value, "predict_proba"))
        and getattr(value, "__module__", module.__name__) == module.__name__
    ]
    return f": it has {', '.join(sorted(own)[:8])}" if own else ""


def _unknown(head: str) -> InputError:
    near = difflib.get_close_matches(head, REGISTRY, n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return InputError(
        f"unknown estimator {head!r}{hint}: choose from {', '.join(REGISTRY)}, or name your own as "
        "package.module:attribute or model.py:attribute"
    )


def _literal(text: str) -> Any:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
