"""The shape of the trained model: what must agree before weights can be loaded."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from icl_estimators.validation import InputError, positive_int, positive_real

__all__ = ["ModelConfig", "require_fields"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape and initial scale of an attention-only transformer.

    Parameters
    ----------
    n_states : int
        K ≥ 2, the size of the vocabulary.
    length : int
        T ≥ 1, the number of tokens read in training: one bias is learnt for each distance 0 … T − 1.
    d_model : int
        Width d of the residual stream.
    n_layers, n_heads : int
        Attention layers, and heads in each; `n_heads` divides `d_model`.
    sentinel : bool
        Whether a special token precedes every sequence.
    init_std : float
        Standard deviation of the initial embeddings. The other matrices start uniform on ±1/√d, the
        biases at 0.

    Raises
    ------
    InputError
        If a number is out of range, `sentinel` is not a bool, or `n_heads` does not divide `d_model`.

    Examples
    --------
    >>> ModelConfig().parameter_count
    33352
    """

    n_states: int = 3
    length: int = 100
    d_model: int = 64
    n_layers: int = 2
    n_heads: int = 1
    sentinel: bool = False
    init_std: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_states", positive_int(self.n_states, "n_states", at_least=2))
        for name in ("length", "d_model", "n_layers", "n_heads"):
            object.__setattr__(self, name, positive_int(getattr(self, name), name))
        object.__setattr__(self, "init_std", positive_real(self.init_std, "init_std"))
        if not isinstance(self.sentinel, bool):
            raise InputError(f"sentinel must be True or False, not {self.sentinel!r}")
        if self.d_model % self.n_heads:
            raise InputError(f"n_heads must divide d_model = {self.d_model}, but {self.n_heads} does not")

    @property
    def n_distances(self) -> int:
        """How many relative distances have a bias of their own: T, and one more for the sentinel."""
        return self.length + self.sentinel

    @property
    def foldable(self) -> bool:
        """Whether the exact folded form exists: two layers of one head, no sentinel."""
        return self.n_layers == 2 and self.n_heads == 1 and not self.sentinel

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of every tensor, in the order in which they are drawn and stored."""
        square = (self.d_model, self.d_model)
        shapes: dict[str, tuple[int, ...]] = {"embedding": (self.n_states + self.sentinel, self.d_model)}
        for layer in range(self.n_layers):
            shapes[f"layers.{layer}.distance_bias"] = (self.n_heads, self.n_distances)
            for matrix in ("query", "key", "value", "output"):
                shapes[f"layers.{layer}.{matrix}"] = square
        shapes["unembedding"] = (self.d_model, self.n_states)
        return shapes

    @property
    def parameter_count(self) -> int:
        """The number of weights: (K + s)·d + d·K + layers·(4d² + heads·(T + s)), s = 1 with a sentinel."""
        return sum(math.prod(shape) for shape in self.parameter_shapes.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """Return the config that :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If a field is missing, unknown or out of range.

        Examples
        --------
        >>> ModelConfig.from_dict(ModelConfig(n_states=4).to_dict()).n_states
        4
        """
        require_fields(cls, values, "the model's config")
        return cls(**values)


def require_fields(cls: type, values: Mapping[str, Any], what: str) -> None:
    """Check that `values` has just the fields of the dataclass `cls`.

    Raises
    ------
    InputError
        If a field is missing or unknown; begins with `what` and names the first.
    """
    names = {field.name for field in fields(cls)}
    for name in sorted(names ^ set(values)):
        raise InputError(f"{what} {'lacks' if name in names else 'has an unknown field'} {name!r}")
