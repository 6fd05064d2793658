"""What an estimator may offer beyond the contract: for each a small protocol and the function that asks for it.

An attribute with such a name may have another meaning in other code. So an attribute counts as an offer only if it has
the right type: a method, a string, a number, true or false. Any other value is ignored. A method that
fails, or a number out of its range, is a :class:`ContractError`.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from icl_estimators.estimators.base import ContractError, Estimator

if TYPE_CHECKING:
    import torch

    from icl_estimators.transformer import Folded

__all__ = [
    "FLOAT32_TOLERANCE",
    "CountsTokens",
    "Expects",
    "HasAttention",
    "HasFolded",
    "ReadFromFile",
    "ReadsWindow",
    "RunsOnDevice",
    "RunsOnEngine",
    "StatesTolerance",
    "TrainingRun",
    "attends",
    "attention_of",
    "counted_order",
    "device_of",
    "engine_of",
    "expect",
    "folded_of",
    "reads_window",
    "recipe_of",
    "stated_tolerance",
    "stated_tolerances",
    "tolerance_lines",
    "weights_of",
]

Array = NDArray[np.float64]

FLOAT32_TOLERANCE = 1e-6

LOOSEST_TOLERANCE = 0.05
"""What half precision may need: bfloat16 has 8 bits, so that probabilities agree to about 0.01."""


@runtime_checkable
class HasAttention(Protocol):
    """An estimator of two attention layers with one head each, that can show where they look."""

    def attention(self, tokens: NDArray[np.int64]) -> tuple[Array, Array] | None:
        """Return the weights of layer 1 and 2, shape (N, P, P) each, or None if they have another form.

        P = T, or T + 1 with a sentinel in front. `tokens`, shape (N, T), are read-only.
        """
        ...


@runtime_checkable
class HasFolded(Protocol):
    """A trained model that acts through a few numbers: they are tabulated, and interventions change them.

    Attributes
    ----------
    folded : Folded or None
        See :func:`icl_estimators.transformer.fold`; None for models of another form.
    """

    @property
    def folded(self) -> Folded | None: ...


@runtime_checkable
class TrainingRun(Protocol):
    """One of several training runs, which also get rows together.

    Attributes
    ----------
    recipe : str or None
        The name of these rows; None if it is not pooled.
    """

    recipe: str | None


@runtime_checkable
class ReadsWindow(Protocol):
    """An estimator that cannot read a long history.

    Attributes
    ----------
    windowed : bool
        True: on observed sequences it is given the sliding window only.
    """

    windowed: bool


@runtime_checkable
class CountsTokens(Protocol):
    """A rule for which the probability of a token depends only on how often it followed the last k tokens.

    Such a rule can carry counts over from one sequence to the next, and reads long histories in little memory.

    Attributes
    ----------
    counted_order : int or None
        k ≥ 0; None for a rule of another form. With k = 0 the counts are of all tokens so far.
    """

    counted_order: int | None

    def from_counts(self, followed: NDArray[Any], visits: NDArray[Any]) -> Array:
        """Return the probability of tokens that followed their context `followed` times out of `visits`, shape (n,).

        Both are 0 where fewer than k tokens have been read.
        """
        ...


@runtime_checkable
class Expects(Protocol):
    """An estimator that prepares for the work, for example by compiling."""

    def expect(self, sequences: int, length: int) -> None:
        """Take note that about so many sequences of so many tokens will be asked for, over all calls."""
        ...


@runtime_checkable
class StatesTolerance(Protocol):
    """An estimator that says how closely its predictions agree with themselves, such as a model in half precision.

    Attributes
    ----------
    tolerance : float
        Above 0, at most 0.05: how far a prediction may be from that in another batch, or from that without the later
        tokens. Studies print it and record it. Rows must sum to 1 all the same: convert logits to float64 before
        the softmax.
    """

    tolerance: float


@runtime_checkable
class ReadFromFile(Protocol):
    """An estimator with weights from a file, whose SHA-256 is recorded.

    Attributes
    ----------
    checkpoint : str or path
    """

    checkpoint: str | os.PathLike[str]


@runtime_checkable
class RunsOnEngine(Protocol):
    """An estimator that can be computed in several ways, whose last bits differ.

    Attributes
    ----------
    engine : str
        "kernel" is recorded.
    """

    engine: str


@runtime_checkable
class RunsOnDevice(Protocol):
    """An estimator that may run elsewhere than on the CPU, which is recorded.

    Attributes
    ----------
    device : torch.device or str
    """

    device: torch.device | str


def _value(estimator: object, protocol: type, attribute: str) -> Any:
    """Return what an estimator has under the name of a protocol's attribute, None if it has none."""
    try:
        return getattr(estimator, attribute) if isinstance(estimator, protocol) else None
    except AttributeError:
        return None
    except Exception as error:
        raise ContractError(
            f"{_name(estimator)}: its attribute `{attribute}` cannot be read: {type(error).__name__}: {error}"
        ) from error


def _name(estimator: object) -> str:
    return estimator.name if isinstance(estimator, Estimator) else repr(estimator)


def attends(estimator: object) -> bool:
    """Say whether an estimator has a method ``attention``; a submodule of that name does not count."""
    return inspect.isroutine(_value(estimator, HasAttention, "attention"))


def attention_of(estimator: object, tokens: NDArray[np.int64]) -> tuple[Array, Array] | None:
    """Return both layers' weights, None if the estimator does not offer them or has another form.

    Parameters
    ----------
    estimator : Estimator
    tokens : ndarray of int64, shape (N, T)

    Returns
    -------
    tuple of two ndarrays of float64, shape (N, P, P), or None
        Copies: the estimator may use its buffers again. P = T, or T + 1 with a sentinel in front.

    Raises
    ------
    ContractError
        If the method fails, or returns something else.
    """
    if not attends(estimator):
        return None
    name = _name(estimator)
    remedy = "return two arrays of weights, None for another form, or rename the attribute"
    given = tokens.view()
    given.setflags(write=False)
    try:
        layers = _value(estimator, HasAttention, "attention")(given)
    except Exception as error:
        raise ContractError(f"{name}: attention(tokens) failed: {type(error).__name__}: {error}: {remedy}") from error
    if layers is None:
        return None
    n_sequences, length = tokens.shape
    shapes = [(n_sequences, size, size) for size in (length, length + 1)]
    found = [np.shape(layer) for layer in layers] if isinstance(layers, tuple) else None
    if found is None or len(found) != 2 or found[0] != found[1] or found[0] not in shapes:
        what = type(layers).__name__ if found is None else f"arrays of shapes {', '.join(map(str, found))}"
        raise ContractError(f"{name}: attention(tokens) returned {what} for tokens of shape {tokens.shape}: {remedy}")
    return np.array(layers[0], dtype=np.float64), np.array(layers[1], dtype=np.float64)


def folded_of(estimator: Estimator) -> Folded | None:
    """Return the numbers through which a trained model acts, None if it offers none.

    Raises
    ------
    ContractError
        If they are for another number of states.
    """
    value = _value(estimator, HasFolded, "folded")
    if value is None:
        return None
    from icl_estimators.transformer import Folded

    if not isinstance(value, Folded):
        return None
    if value.n_states != estimator.n_states:
        raise ContractError(
            f"{estimator.name}: its attribute `folded` is for {value.n_states} states, not for {estimator.n_states}"
        )
    return value


def recipe_of(estimator: object) -> str | None:
    """Return the name of the rows that a training run is pooled under, None if it is not."""
    value = _value(estimator, TrainingRun, "recipe")
    return value if isinstance(value, str) and value else None


def reads_window(estimator: object) -> bool:
    """Return whether an estimator is given only the window.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> reads_window(get("bigram")), reads_window(get("transformer"))
    (False, True)
    """
    value = _value(estimator, ReadsWindow, "windowed")
    return isinstance(value, (bool, np.bool_)) and bool(value)


def counted_order(estimator: object) -> int | None:
    """Return how many tokens are the context of a rule that needs only counts; None for other estimators.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> [counted_order(get(rule)) for rule in ("unigram", "bigram", "add-one:order=2", "construction")]
    [0, 1, 2, None]
    """
    value = _value(estimator, CountsTokens, "counted_order")
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0
    return int(value) if whole and inspect.isroutine(getattr(estimator, "from_counts", None)) else None


def expect(estimators: Iterable[object], sequences: int, length: int) -> None:
    """Tell estimators how much they will be asked for: those that have a method ``expect`` may prepare for it.

    Parameters
    ----------
    estimators : iterable of Estimator
    sequences, length : int
        About so many sequences of so many tokens, over all calls.

    Raises
    ------
    ContractError
        If the method fails.
    """
    for estimator in estimators:
        told = _value(estimator, Expects, "expect")
        if not inspect.isroutine(told):
            continue
        try:
            told(sequences, length)
        except Exception as error:
            raise ContractError(
                f"{_name(estimator)}: expect(sequences, length) failed: {type(error).__name__}: {error}: take two "
                "integers, or rename the attribute"
            ) from error


def stated_tolerance(estimator: object) -> float:
    """Return the tolerance that an estimator states, or that of float32.

    Raises
    ------
    ContractError
        If it is a number that is not above 0 and at most 0.05.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> stated_tolerance(get("add-one"))
    1e-06
    """
    stated = _stated(estimator)
    return FLOAT32_TOLERANCE if stated is None else stated


def stated_tolerances(estimators: Iterable[Estimator]) -> dict[str, float]:
    """Return, by name, the tolerances of the estimators that state one.

    Raises
    ------
    ContractError
        As :func:`stated_tolerance`.
    """
    return {rule.name: stated for rule in estimators if (stated := _stated(rule)) is not None}


def _stated(estimator: object) -> float | None:
    value = _value(estimator, StatesTolerance, "tolerance")
    if not isinstance(value, (int, float, np.floating)) or isinstance(value, bool):
        return None
    if not 0 < value <= LOOSEST_TOLERANCE:
        raise ContractError(
            f"{_name(estimator)}: its attribute `tolerance` is {value!r}: state a number above 0 and at most "
            f"{LOOSEST_TOLERANCE}, or leave it out"
        )
    return float(value)


def tolerance_lines(tolerances: dict[str, float]) -> list[str]:
    """Return a line for each tolerance that is looser than float32's, by the estimator's name.

    Examples
    --------
    >>> tolerance_lines({"half": 0.01, "single": 1e-6})
    ['half: its predictions are checked to 0.01 only, the tolerance that it states (float32: 1e-06)']
    """
    return [
        f"{name}: its predictions are checked to {tolerance:g} only, the tolerance that it states "
        f"(float32: {FLOAT32_TOLERANCE:g})"
        for name, tolerance in tolerances.items()
        if tolerance > FLOAT32_TOLERANCE
    ]


def weights_of(estimator: object) -> Path | None:
    """Return the file that an estimator was read from, None if there is none."""
    value = _value(estimator, ReadFromFile, "checkpoint")
    if not isinstance(value, (str, os.PathLike)) or not os.path.isfile(value):
        return None
    return Path(os.fsdecode(value))


def engine_of(estimator: object) -> str | None:
    """Return what computes an estimator's predictions, None if it does not say."""
    value = _value(estimator, RunsOnEngine, "engine")
    return value if isinstance(value, str) else None


def device_of(estimator: object) -> str | None:
    """Return where an estimator runs, by the name of the GPU if it is one; None if that is the CPU or not known."""
    value = _value(estimator, RunsOnDevice, "device")
    torch_is_loaded = sys.modules.get("torch")
    if not isinstance(value, str) and not (torch_is_loaded and isinstance(value, torch_is_loaded.device)):
        return None
    kind = str(value).partition(":")[0]
    if kind != "cuda":
        return None if kind == "cpu" else str(value)
    import torch

    try:
        return torch.cuda.get_device_name(value)
    except (AssertionError, RuntimeError):  # no GPU with that number, or no GPU
        return str(value)
