"""What computes a model: the compiled kernel, or torch operations.

Both give the same results except for the last bits of float32. Compiling takes seconds, once on a machine. Whether that
is worth it depends only on the size of the work, not on what is compiled already. So the same command gives the same
bits every time on the same kind of CPU with the same versions.
"""

from __future__ import annotations

from typing import Literal

from icl_estimators.compiling import numba_is_there
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.validation import InputError

__all__ = ["Choice", "Engine", "choose_engine", "require_engine"]

Engine = Literal["kernel", "torch"]
Choice = Literal["auto", "kernel", "torch"]

MOST_STATES = 8
"""Beyond it, code that is written out state by state no longer fits into a processor's registers."""

# Pairs of positions, N · T² for N sequences of T tokens, that the kernel must work off to make up for being compiled:
# some 6 s against 6 ns a pair saved in training, 2 s against 2.5 ns in prediction.
_PAIRS = {"training": 1.2e9, "prediction": 1.0e9}


def require_engine(engine: Engine, config: ModelConfig, device: str) -> None:
    """Prove that an engine can run a model here.

    Raises
    ------
    InputError
        If it cannot; the message says why.
    """
    if engine == "torch":
        return
    obstacle = _obstacle(config, device)
    if obstacle is not None:
        raise InputError(f"the engine kernel needs {obstacle}: use the engine torch")
    if not numba_is_there():
        raise InputError("the engine kernel needs numba: pip install 'icl-estimators[fast]', or use the engine torch")


def choose_engine(
    choice: Choice,
    config: ModelConfig,
    *,
    work: Literal["training", "prediction"],
    sequences: int,
    length: int,
    device: str = "cpu",
) -> Engine:
    """Return the engine for so many sequences of so many tokens.

    Parameters
    ----------
    choice : {"auto", "kernel", "torch"}
        "auto" is the kernel where it can run and makes up for the time that compiling takes.
    config : ModelConfig
    work : {"training", "prediction"}
    sequences, length : int
        The size of all the work.
    device : str

    Raises
    ------
    InputError
        If the kernel was asked for and cannot run.

    Examples
    --------
    >>> choose_engine("auto", ModelConfig(), work="prediction", sequences=1, length=7)
    'torch'
    """
    if choice != "auto":
        require_engine(choice, config, device)
        return choice
    worth_it = sequences * length * length >= _PAIRS[work]
    return "kernel" if worth_it and _obstacle(config, device) is None and numba_is_there() else "torch"


def _obstacle(config: ModelConfig, device: str) -> str | None:
    """Return what the kernel would need of the model and the device."""
    if not config.foldable:
        return "two layers of one head without a sentinel"
    if config.n_states > MOST_STATES:
        return f"at most {MOST_STATES} states"
    return None if device == "cpu" else "the device cpu"
