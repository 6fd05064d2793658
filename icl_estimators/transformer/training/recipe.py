"""How a model is trained: every number that decides a run apart from its seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from icl_estimators.sources import ChainLaw
from icl_estimators.transformer.config import require_fields
from icl_estimators.validation import InputError, positive_int, positive_real

__all__ = ["Recipe", "Schedule", "row_steps", "snapshot_steps"]

Schedule = Literal["cosine", "constant"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained.

    Parameters
    ----------
    steps, batch : int
        Updates, and fresh chains in each, one sequence from every chain.
    length : int
        T: T tokens are read, T predicted.
    peak_lr : float
        Adam's step size at the start.
    schedule : {"cosine", "constant"}
        Cosine: step s of S has step size ½(1 + cos(πs/S)) times the peak.
    concentration : float
        α of the chains' Dirichlet prior.
    start : str
        Law of the first token: "uniform" or "stationary".
    beta1, beta2, epsilon : float
        Adam's.

    Raises
    ------
    InputError
        If a value is out of range or `schedule` unknown.

    Examples
    --------
    >>> recipe = Recipe()
    >>> recipe.learning_rate(0), recipe.learning_rate(4000)
    (0.003, 0.0015)
    """

    steps: int = 8000
    batch: int = 64
    length: int = 100
    peak_lr: float = 3e-3
    schedule: Schedule = "cosine"
    concentration: float = 1.0
    start: str = "uniform"
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    def __post_init__(self) -> None:
        for name in ("steps", "batch", "length"):
            object.__setattr__(self, name, positive_int(getattr(self, name), name))
        for name in ("peak_lr", "epsilon"):
            object.__setattr__(self, name, positive_real(getattr(self, name), name))
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            if not isinstance(value, (int, float)) or not 0.0 <= value < 1.0:
                raise InputError(f"{name} must be a number from 0 up to but not including 1, not {value!r}")
        if self.schedule not in get_args(Schedule):
            raise InputError(f"schedule must be one of {', '.join(get_args(Schedule))}, not {self.schedule!r}")
        law = self.law(2)  # checks both of its own
        object.__setattr__(self, "concentration", law.concentration)

    def learning_rate(self, step: int) -> float:
        """Return the step size of update `step`, counted from 0."""
        if self.schedule == "constant":
            return self.peak_lr
        return 0.5 * self.peak_lr * (1.0 + math.cos(math.pi * step / self.steps))

    def law(self, n_states: int) -> ChainLaw:
        """Return the law of the training chains."""
        return ChainLaw(n_states, self.concentration, self.start)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Recipe:
        """Return the recipe that :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If a field is missing, unknown or out of range.

        Examples
        --------
        >>> Recipe.from_dict(Recipe(steps=5).to_dict()).steps
        5
        """
        require_fields(cls, values, "the recipe")
        return cls(**values)


def snapshot_steps(steps: int) -> list[int]:
    """Return the steps whose weights are kept: 0, about ten in each decade, and the last.

    Examples
    --------
    >>> snapshot_steps(30)
    [0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30]
    """
    decades = math.log10(steps)
    spaced = {round(10.0 ** (k / 10)) for k in range(int(10 * decades) + 1)}
    return sorted({0, steps} | {step for step in spaced if step < steps})


def row_steps(steps: int) -> list[int]:
    """Return the steps with a row of metrics: those of the snapshots and every hundredth.

    Examples
    --------
    >>> row_steps(300)[-6:]
    [100, 126, 158, 200, 251, 300]
    """
    return sorted(set(snapshot_steps(steps)) | set(range(0, steps, 100)))
