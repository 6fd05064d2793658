"""Estimators for tests: one that keeps the contract, those that break it, and strangers to the package.

Test modules and ``--estimators strange_rules:Half`` both find it, because `pythonpath` in pyproject.toml names this
folder; a process that a test starts needs the folder in its PYTHONPATH.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from icl_estimators.estimators import get


class Flat:
    """Uniform over three states: a stranger's estimator that keeps the contract."""

    n_states = 3

    def __init__(self, name: str = "mine") -> None:
        self.name = name

    def predict_proba(self, tokens: np.ndarray) -> Any:
        return np.full((*tokens.shape, 3), 1 / 3)


class Changed(Flat):
    """What `change` makes of the tokens and of uniform predictions; it may raise."""

    def __init__(self, change: Callable[[np.ndarray, np.ndarray], Any], name: str = "wrong") -> None:
        super().__init__(name)
        self.change = change

    def predict_proba(self, tokens: np.ndarray) -> Any:
        return self.change(tokens, super().predict_proba(tokens))


class Leaning(Flat):
    """One of several training runs: uniform, leaning towards state 0 by its own weight."""

    def __init__(self, name: str, weight: float, recipe: str | None = "m") -> None:
        super().__init__(name)
        self.weight, self.recipe = weight, recipe

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        out = np.full((*tokens.shape, 3), (1 - self.weight) / 3)
        out[..., 0] += self.weight
        return out


# Predictions that are no laws.


class Half(Flat):
    def __init__(self) -> None:
        super().__init__("half")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return super().predict_proba(tokens) / 2


class NotANumber(Flat):
    def __init__(self) -> None:
        super().__init__("nan")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return super().predict_proba(tokens) * np.nan


class Negative(Flat):
    def __init__(self) -> None:
        super().__init__("negative")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return super().predict_proba(tokens) + np.array([1, -1, 0])


class Short(Flat):
    def __init__(self) -> None:
        super().__init__("short")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return super().predict_proba(tokens)[:, 1:]


# Those that see tokens after the prefix.


class Peeking(Flat):
    """It looks at the last token of all."""

    def __init__(self) -> None:
        super().__init__("peeking")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        out = super().predict_proba(tokens)
        out[tokens[:, -1] == 0] = [0.5, 0.25, 0.25]
        return out


class Foreseeing(Flat):
    """Another rule that gives `weight` to the token that comes, at context lengths above `after`."""

    def __init__(self, weight: float = 0.7, after: int = 0, spec: str = "uniform") -> None:
        super().__init__("foreseeing")
        self.weight, self.after, self.rule = weight, after, get(spec)

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        out = self.rule.predict_proba(tokens)
        late = np.arange(1, tokens.shape[1]) > self.after
        ahead = (1 - self.weight) * out[:, :-1] + self.weight * np.eye(3)[tokens[:, 1:]]
        out[:, :-1][:, late] = ahead[:, late]
        return out


# Those that fail.


class Raises(Flat):
    def __init__(self) -> None:
        super().__init__("raises")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        raise RuntimeError("out of order")


class Unhappy(Flat):
    """It fails on sequences of `length` tokens that begin with `start`, in any batch."""

    def __init__(self, start: Sequence[int] = (2,) * 7, length: int = 13) -> None:
        super().__init__("unhappy")
        self.start, self.length = np.array(start), length

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        if tokens.shape[1] == self.length and (tokens[:, : len(self.start)] == self.start).all(axis=1).any():
            raise ArithmeticError("not this one")
        return super().predict_proba(tokens)


class Writes(Flat):
    """It writes to the tokens that it is given."""

    def __init__(self) -> None:
        super().__init__("writes")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        tokens[...] = 0
        return super().predict_proba(tokens)


class Slow(Flat):
    def __init__(self) -> None:
        super().__init__("slow")

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        time.sleep(0.4 if len(tokens) > 100 else 0)
        return super().predict_proba(tokens)


class Secretive(Flat):
    """It cannot be sent to a worker."""

    def __reduce__(self) -> Any:
        raise TypeError("I do not travel")


# Those that return the same memory at each call.

_buffer = np.empty(0)  # one for all of them, so that two estimators overwrite each other too


def refill(values: np.ndarray) -> np.ndarray:
    """Return `values` in the one buffer; what was returned before is gone."""
    global _buffer
    if _buffer.size < values.size:
        _buffer = np.empty(values.size)
    _buffer[:] = np.nan
    out = _buffer[: values.size].reshape(values.shape)
    out[...] = values
    return out


class Plain:
    """Another rule under a name of its own, its attention included."""

    def __init__(self, spec: str, name: str | None = None, recipe: str | None = None, n_states: int = 3) -> None:
        self.rule: Any = get(spec, n_states=n_states)
        self.name, self.n_states, self.recipe = name or f"my {self.rule.name}", n_states, recipe

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return self.rule.predict_proba(tokens)

    def attention(self, tokens: np.ndarray) -> Any:
        return self.rule.attention(tokens) if hasattr(self.rule, "attention") else None


class Reusing(Plain):
    """The same in the one buffer."""

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        return refill(super().predict_proba(tokens))

    def attention(self, tokens: np.ndarray) -> Any:
        layers = super().attention(tokens)
        return None if layers is None else tuple(refill(np.stack(layers)))


reusing_add_one, reusing_unigram = Reusing("add-one", "own add-one"), Reusing("unigram", "own unigram")


# Functions that break the contract in one way each, and an estimator made of any function.

Predict = Callable[[np.ndarray], Any]


class Rule:
    """An estimator made of any function."""

    def __init__(self, predict: Predict, *, name: Any = "mine", n_states: Any = 3) -> None:
        self.name = name
        self.n_states = n_states
        self.predict_proba = predict


good = get("add-one").predict_proba


def changed(change: Callable[[np.ndarray], Any]) -> Predict:
    return lambda tokens: change(good(tokens))


def with_entry(value: float) -> Predict:
    def predict(tokens: np.ndarray) -> np.ndarray:
        prediction = good(tokens)
        prediction[-1, -1, -1] = value
        return prediction

    return predict


def looks_ahead(tokens: np.ndarray) -> np.ndarray:
    return np.roll(good(tokens), -1, axis=1)


def looks_at_the_last_token(tokens: np.ndarray) -> np.ndarray:
    return 0.9 * good(tokens) + 0.1 * np.eye(3)[tokens[:, -1:]]


def looks_at_the_length(tokens: np.ndarray) -> np.ndarray:
    weight = 1 / tokens.shape[1]
    return (1 - weight) * good(tokens) + weight / 3


def pools_the_batch(tokens: np.ndarray) -> np.ndarray:
    prediction = good(tokens)
    return 0.5 * prediction + 0.5 * prediction.mean(axis=0)


def writes_to_its_input(tokens: np.ndarray) -> np.ndarray:
    tokens[:] = 0
    return good(tokens)


def writes_all_the_same(tokens: np.ndarray) -> np.ndarray:
    prediction = good(tokens)
    tokens.setflags(write=True)
    tokens += 1
    return prediction


def writes_through_torch(tokens: np.ndarray) -> np.ndarray:
    import torch

    prediction = good(tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns once that the array is read-only, and then writes to it
        torch.from_numpy(tokens)[0, 0] = 2
    return prediction


def at_random() -> Predict:
    rng = np.random.default_rng(0)
    return lambda tokens: rng.dirichlet(np.ones(3), size=tokens.shape)


def fails(tokens: np.ndarray) -> np.ndarray:
    return good(tokens)[tokens.shape[1] // 0]


def looks_ahead_at(where: Callable[[int], bool], distance: int) -> Predict:
    """Give some of the probability to the token `distance` ahead, at the context lengths that `where` likes."""

    def predict(tokens: np.ndarray) -> np.ndarray:
        prediction = good(tokens).copy()
        for n in range(1, tokens.shape[1] + 1 - distance):
            if where(n):
                prediction[:, n - 1] = 0.9 * prediction[:, n - 1] + 0.1 * np.eye(3)[tokens[:, n - 1 + distance]]
        return prediction

    return predict


def depends_a_little_on_the_batch(tokens: np.ndarray) -> np.ndarray:
    weight = 0.004 / len(tokens)
    return (1 - weight) * good(tokens) + weight / 3


# A stranger whose attributes have the names of optional capabilities, and mean something else.

SILLY: tuple[Any, ...] = (True, 7, "pasta", b"pasta", "", [1.0], {"a": 1}, np.eye(2), object(), int, "x" * 5000, "\0")


class Stranger(Flat):
    """Every capability's attribute has the value `value`."""

    def __init__(self, value: Any = True, name: str = "stranger") -> None:
        super().__init__(name)
        self.attention = self.folded = self.recipe = self.window = self.windowed = value
        self.checkpoint = self.engine = self.expect = self.device = value
        self.info = self.far = self.model = self.gamma = value
        self.tolerance: Any = value if not isinstance(value, int) or isinstance(value, bool) else "loose"


silly_yes, silly_word = Stranger(True, "yes"), Stranger("pasta", "word")
