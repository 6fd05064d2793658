"""Any torch module as an estimator: the softmax of its logits over the entries that stand for the states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from icl_estimators.estimators.base import ContractError
from icl_estimators.validation import InputError, as_tokens, positive_int

__all__ = ["Output", "TorchModel", "from_torch"]

Array = NDArray[np.float64]
Output = Literal["logits", "log_probabilities", "probabilities"]
"""What a module returns."""

HALF_PRECISION_TOLERANCE = 0.02
"""How closely predictions in bfloat16 or float16 agree with themselves in another batch."""

_BATCH = 256
_HALF = (torch.bfloat16, torch.float16)


class TorchModel:
    """The law of the next state that a torch module gives; made by :func:`from_torch`.

    Attributes
    ----------
    name : str
    n_states : int
        K.
    windowed : bool
        Whether the module reads only its last `max_length` tokens.
    tolerance : float
        Only in half precision: how closely its predictions agree with themselves.
    device : torch.device
    """

    wraps_own = True

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        n_states: int,
        tokens: Sequence[int] | None,
        bos: int | None,
        max_length: int | None,
        output: Output,
        batch_size: int,
        device: torch.device,
        dtype: torch.dtype | None,
        name: str,
    ) -> None:
        self.name, self.n_states = name, n_states
        self.windowed = max_length is not None
        self.device = device
        self._module = module
        self._entries = np.arange(n_states) if tokens is None else np.asarray(tokens, dtype=np.int64)
        self._bos, self._output, self._batch = bos, output, batch_size
        self._longest = max_length
        if (dtype or next((p.dtype for p in module.parameters()), torch.float32)) in _HALF:
            self.tolerance = HALF_PRECISION_TOLERANCE

    def predict_proba(self, tokens: ArrayLike) -> Array:
        """Predict after every prefix: (N, T) integers in [0, K) → (N, T, K) float64.

        The module's own probabilities are divided by their sum over the states; :meth:`mass_elsewhere` is the rest.
        """
        logarithms = self._log_probabilities(as_tokens(tokens, self.n_states))[..., self._entries]
        shares = np.exp(logarithms - logarithms.max(axis=-1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def mass_elsewhere(self, tokens: ArrayLike) -> Array:
        """Return how much probability the module gives to entries that stand for no state, shape (N, T)."""
        own = np.exp(self._log_probabilities(as_tokens(tokens, self.n_states)))
        return np.asarray(np.clip(1.0 - own[..., self._entries].sum(axis=-1), 0.0, 1.0))

    def _log_probabilities(self, tokens: NDArray[np.int64]) -> Array:
        """Return log-probabilities over the module's whole vocabulary, shape (N, T, V)."""
        length = tokens.shape[1]
        room = length if self._longest is None else min(length, self._longest)
        first = self._run(tokens[:, :room])
        if room == length:
            return first
        # Beyond its length the module reads the last tokens as a fresh prefix, once for each position.
        windows = np.lib.stride_tricks.sliding_window_view(tokens, room, axis=1)[:, 1:]
        rest = self._run(windows.reshape(-1, room))[:, -1]
        return np.concatenate([first, rest.reshape(len(tokens), length - room, -1)], axis=1)

    def _run(self, tokens: NDArray[np.int64]) -> Array:
        given = self._entries[tokens]
        if self._bos is not None:
            given = np.concatenate([np.full((len(given), 1), self._bos), given], axis=1)
        parts = []
        with self._quiet(), torch.inference_mode():
            for start in range(0, len(given), self._batch):
                batch = torch.from_numpy(given[start : start + self._batch].copy()).to(self.device)
                parts.append(self._normalised(self._ask(batch), batch.shape))
        found = np.concatenate(parts) if parts else np.zeros((0, given.shape[1], self.n_states))
        return found if self._bos is None else found[:, 1:]

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Switch dropout and the like off, and leave the module as it was."""
        modes = {part: part.training for part in self._module.modules()}
        self._module.eval()
        try:
            yield
        finally:
            for part, mode in modes.items():
                part.training = mode

    def _ask(self, batch: torch.Tensor) -> torch.Tensor:
        try:
            found: Any = self._module(batch)
        except IndexError as error:
            raise ContractError(
                f"{self.name}: the module failed with an index error on {batch.shape[1]} tokens ({error}): if it reads "
                "fewer, give from_torch(…, max_length=…); if its vocabulary is smaller, give tokens=…"
            ) from error
        if hasattr(found, "logits"):
            found = found.logits
        elif isinstance(found, (tuple, list)) and found:
            found = found[0]
        if not isinstance(found, torch.Tensor):
            raise ContractError(f"{self.name}: the module returned {type(found).__name__}, not a tensor of logits")
        return found

    def _normalised(self, found: torch.Tensor, shape: torch.Size) -> Array:
        needed = int(self._entries.max()) + 1
        if found.ndim != 3 or found.shape[:2] != shape or found.shape[2] < needed:
            raise ContractError(
                f"{self.name}: the module returned shape {tuple(found.shape)} for tokens of shape {tuple(shape)}: "
                f"(N, T, V) with V of at least {needed} is needed"
            )
        values = found.detach().double().cpu()  # float64 before the softmax, so that rows sum to 1
        if self._output == "logits":
            values = torch.log_softmax(values, dim=-1)
        elif self._output == "probabilities":
            if bool((values < 0).any()):
                raise ContractError(f"{self.name}: a probability is below 0: give from_torch(…, output='logits')")
            values = values.log()
        logarithms: Array = values.numpy()
        if self._output != "logits":
            off = float(np.abs(np.exp(logarithms).sum(axis=-1) - 1.0).max(initial=0.0))
            if not off < 1e-2:
                raise ContractError(
                    f"{self.name}: its {self._output.replace('_', '-')} sum to 1 ± {off:.2g}: are they logits? give "
                    "from_torch(…, output='logits')"
                )
        return logarithms


def from_torch(
    module: torch.nn.Module,
    *,
    n_states: int,
    tokens: Sequence[int] | None = None,
    bos: int | None = None,
    max_length: int | None = None,
    output: Output = "logits",
    batch_size: int = _BATCH,
    device: str | torch.device | None = None,
    dtype: torch.dtype | None = None,
    name: str | None = None,
) -> TorchModel:
    """Make an estimator of a torch module.

    Parameters
    ----------
    module : torch.nn.Module
        Takes integers of shape (N, T); returns a tensor of shape (N, T, V) whose [:, n−1] predicts token n + 1, an
        object with such a tensor as ``logits``, or a tuple that begins with it. It is run in evaluation mode.
    n_states : int
        K.
    tokens : sequence of int, optional
        Which entry of the module's vocabulary stands for each state; by default 0 … K − 1. Predictions are the softmax
        over these entries. :meth:`TorchModel.mass_elsewhere` says what the module gives to the others.
    bos : int, optional
        An entry that is put before every sequence.
    max_length : int, optional
        How many tokens the module can read, not counting `bos`. Beyond, it gets the last ones as a fresh prefix.
    output : {"logits", "log_probabilities", "probabilities"}
        What the module returns.
    batch_size : int
        Sequences that go through it together; all have the same length.
    device : str or torch.device, optional
        Where it runs; by default where its weights are.
    dtype : torch.dtype, optional
        The module is converted to it. Predictions in half precision agree with themselves to 0.02 only, which
        studies print and record.
    name : str, optional
        What the tables call it; by default the name of the module's class.

    Returns
    -------
    TorchModel

    Raises
    ------
    InputError
        If `module` is no module (but its class, say), `tokens` are not K different integers of at least 0, or a number
        or `output` is out of its range.

    Examples
    --------
    >>> module = torch.nn.Sequential(torch.nn.Embedding(3, 8), torch.nn.Linear(8, 3))
    >>> model = from_torch(module, n_states=3, name="markov")
    >>> model.predict_proba([[0, 1, 0, 2]]).shape
    (1, 4, 3)
    """
    if isinstance(module, type) and issubclass(module, torch.nn.Module):
        raise InputError(f"{module.__name__} is a class: give from_torch an instance, {module.__name__}(…)")
    if not isinstance(module, torch.nn.Module):
        raise InputError(f"from_torch takes a torch.nn.Module, not {type(module).__name__}")
    n_states = positive_int(n_states, "n_states", at_least=2)
    if tokens is not None:
        entries = [positive_int(entry, "each of tokens", at_least=0) for entry in tokens]
        if len(entries) != n_states or len(set(entries)) != n_states:
            raise InputError(f"tokens must be {n_states} different entries, one for each state, not {list(tokens)}")
    if bos is not None:
        bos = positive_int(bos, "bos", at_least=0)
    if max_length is not None:
        max_length = positive_int(max_length, "max_length")
    if output not in get_args(Output):
        raise InputError(f"output must be one of {', '.join(get_args(Output))}, not {output!r}")
    weight = next(module.parameters(), None)
    place = torch.device(device) if device is not None else weight.device if weight is not None else torch.device("cpu")
    if dtype is not None or device is not None:
        module = module.to(device=place, dtype=dtype)
    return TorchModel(
        module,
        n_states=n_states,
        tokens=tokens,
        bos=bos,
        max_length=max_length,
        output=output,
        batch_size=positive_int(batch_size, "batch_size"),
        device=place,
        dtype=dtype,
        name=name or type(module).__name__,
    )
