"""Training on fresh chains: a recipe, and a trainer that can be stopped and taken up again after any step.

Step s of seed k draws its chains from an address of its own on the training stream, and the initial weights
have theirs, so that what a run computes next is a function of its weights, moments and step alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from icl_estimators.chains import (
    ChainLaw,
    Sample,
    StartLaw,
    posterior_predictive,
    sample_batches,
    transition_counts,
)
from icl_estimators.divergences import kl_divergence, log_loss
from icl_estimators.transformer.adam import Moments, adam_update
from icl_estimators.transformer.config import ModelConfig, require_fields
from icl_estimators.transformer.engines import Engine, require_engine
from icl_estimators.transformer.folded import fold
from icl_estimators.transformer.folded_forward import folded_logits
from icl_estimators.transformer.folded_loss import folded_loss
from icl_estimators.transformer.model import Transformer, initial_parameters
from icl_estimators.validation import InputError, positive_int, positive_real

__all__ = [
    "MetricRow",
    "Recipe",
    "Schedule",
    "Trainer",
    "TrainingState",
    "final_metrics",
    "require_device",
    "row_steps",
    "snapshot_steps",
]

Schedule = Literal["cosine", "constant"]

_HELD_OUT_BATCH = 64
# A run's regret is followed on 256 sequences, and a finished model measured on 20,480 others: the same ones
# for every seed, never trained on.
_VALIDATION_BATCHES = 4
_FINAL_BATCHES = 320
_BATCHES_PER_BLOCK = 32
_TOKENS_PER_DRAW = 2**18

Held = tuple[Sample, NDArray[np.float64] | None]


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
    start : {"uniform", "stationary"}
        Law of the first token.
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
    start: StartLaw = "uniform"
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


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One row of a run's metrics.

    Attributes
    ----------
    step : int
        Updates so far.
    loss_nats : float
        Mean training loss of the updates since the row before, nats a token; NaN at step 0.
    regret_nats : float
        Mean over validation sequences and n = 1 … T of KL(q ‖ p̂) with q the Bayes predictive; NaN where
        that is not add-α, under a stationary start.
    learning_rate : float
        Step size of the last update; that of the first one at step 0.
    tokens_per_second : float
        Training tokens a second since the row before or since the run was taken up; NaN at step 0.
    """

    step: int
    loss_nats: float
    regret_nats: float
    learning_rate: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True, eq=False)
class TrainingState:
    """All that the rest of a run depends on.

    Attributes
    ----------
    step, last_row : int
        Updates so far, and how many there had been at the last row of metrics.
    weights, first_moment, second_moment : Tensor of float32, shape (P,)
        Parameters in the order of :attr:`ModelConfig.parameter_shapes`, and Adam's moments of their gradient.
    loss_sum : Tensor of float64, shape ()
        Training loss summed over the updates since the last row.
    """

    step: int
    last_row: int
    weights: Tensor
    first_moment: Tensor
    second_moment: Tensor
    loss_sum: Tensor


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


class Trainer:
    """A training run in memory.

    Parameters
    ----------
    config : ModelConfig
    recipe : Recipe
        Its `length` is the config's.
    seed : int
        Of the initial weights and of the chains.
    device : str
        "cpu", or "cuda" where there is one.
    engine : {"torch", "kernel"}
        What computes loss and gradient; see :mod:`icl_estimators.transformer.engines`.
    state : TrainingState, optional
        Where to go on; by default the run starts at step 0.

    Raises
    ------
    InputError
        If the lengths differ, `seed` is below 0, the device is unknown or absent, the engine cannot run the
        model here, or `state` belongs to a model of another size.

    Examples
    --------
    >>> config, recipe = ModelConfig(length=10), Recipe(steps=4, batch=8, length=10)
    >>> whole = Trainer(config, recipe)
    >>> whole.advance(4)
    >>> half = Trainer(config, recipe)
    >>> half.advance(2)
    >>> resumed = Trainer(config, recipe, state=half.state())
    >>> resumed.advance(4)
    >>> bool((resumed.state().weights == whole.state().weights).all())
    True
    """

    def __init__(
        self,
        config: ModelConfig,
        recipe: Recipe,
        *,
        seed: int = 0,
        device: str = "cpu",
        engine: Engine = "torch",
        state: TrainingState | None = None,
    ) -> None:
        if recipe.length != config.length:
            raise InputError(
                f"the recipe reads {recipe.length} tokens, the model has {config.length} distances: make them equal"
            )
        self.config, self.recipe, self.seed = config, recipe, seed
        self.device, self.engine = require_device(device), engine
        require_engine(engine, config, self.device.type)
        initial = initial_parameters(config, seed)
        flat = torch.cat([tensor.flatten() for tensor in initial.values()])
        state = state or TrainingState(
            step=0,
            last_row=0,
            weights=flat,
            first_moment=torch.zeros_like(flat),
            second_moment=torch.zeros_like(flat),
            loss_sum=torch.zeros((), dtype=torch.float64),
        )
        if state.weights.shape != flat.shape:
            raise InputError(f"the state holds {state.weights.numel()} weights, and the model has {flat.numel()}")
        self.step, self._last_row = state.step, state.last_row
        # One flat leaf: Adam is then one fused operation, and the gradient arrives in one piece.
        self.weights = state.weights.to(self.device, copy=True).requires_grad_()
        self.moments = Moments.of(state.first_moment, state.second_moment, state.step, self.device)
        self.loss_sum = state.loss_sum.to(self.device, copy=True)
        self._plain = None if config.foldable else Transformer(config).to(self.device)
        self._drawn = (0, torch.empty(0))  # first step of the block of batches at hand, and the block
        self._timed_from, self._clock = self.step, time.perf_counter()
        self._validation = _held_out(recipe.law(config.n_states), config.length, 0, _VALIDATION_BATCHES)

    def advance(self, to: int, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Make updates until `to` of them have been made, or `should_stop` says so between two."""
        if self.engine == "kernel":
            from icl_estimators.transformer.together import advance_together  # loads numba

            advance_together([self], to, should_stop)
            return
        while self.step < min(to, self.recipe.steps) and not should_stop():
            loss = self._loss(self.batch(self.step))
            (gradient,) = torch.autograd.grad(loss, self.weights)
            adam_update([self.weights.detach()], [gradient], [self.moments], self.recipe, self.step)
            self.loss_sum += loss.detach()
            self.step += 1

    def parameters(self) -> dict[str, Tensor]:
        """Return the present weights by name, detached; they change with the next update."""
        return self._views(self.weights.detach())

    def model(self) -> Transformer:
        """Return a copy of the present model, on the CPU, for evaluation."""
        model = Transformer(self.config)
        model.load_state_dict(self.parameters())
        return model.requires_grad_(False).eval()

    def state(self) -> TrainingState:
        """Return a copy of what the rest of the run depends on, on the CPU."""
        return TrainingState(
            step=self.step,
            last_row=self._last_row,
            weights=self.weights.detach().to("cpu", copy=True),
            first_moment=self.moments.first.to("cpu", copy=True),
            second_moment=self.moments.second.to("cpu", copy=True),
            loss_sum=self.loss_sum.to("cpu", copy=True),
        )

    def row(self) -> MetricRow:
        """Close the interval since the row before, and measure.

        Raises
        ------
        InputError
            If the loss is no longer finite: the run has diverged.
        """
        updates = self.step - self._last_row
        loss = float(self.loss_sum) / updates if updates else math.nan
        if updates and not math.isfinite(loss):
            raise InputError(f"seed {self.seed} diverged before step {self.step}: give a smaller --peak-lr")
        tokens = (self.step - self._timed_from) * self.recipe.batch * self.recipe.length
        speed = tokens / (time.perf_counter() - self._clock) if tokens else math.nan
        sample, predictive = self._validation
        regret = math.nan
        if predictive is not None:
            regret = float(
                kl_divergence(
                    predictive, _probabilities(self.config, self.parameters(), sample.inputs, self.engine)
                ).mean()
            )
        self.loss_sum.zero_()
        self._last_row = self._timed_from = self.step
        self._clock = time.perf_counter()
        return MetricRow(self.step, loss, regret, self.recipe.learning_rate(max(0, self.step - 1)), speed)

    def _loss(self, tokens: Tensor) -> Tensor:
        parameters = self._views(self.weights)
        if self._plain is None:
            return folded_loss(fold(parameters), tokens)
        logits = torch.func.functional_call(self._plain, parameters, tokens[:, :-1])
        return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def _views(self, flat: Tensor) -> dict[str, Tensor]:
        shapes = self.config.parameter_shapes
        pieces = flat.split([math.prod(shape) for shape in shapes.values()])
        return {name: piece.view(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}

    def batch(self, step: int) -> Tensor:
        """Return the tokens of a step, shape (B, T + 1), from a block drawn for several steps at once."""
        first, block = self._drawn
        if not first <= step < first + len(block):
            batch, length = self.recipe.batch, self.recipe.length
            count = max(1, min(64, _TOKENS_PER_DRAW // (batch * (length + 1)), self.recipe.steps - step))
            draw = _tokens
            if self.engine == "kernel":
                from icl_estimators.chains.compiled import training_tokens as draw  # loads numba
            law = self.recipe.law(self.config.n_states)
            tokens = draw(range(step, step + count), batch=batch, length=length, law=law, seed=self.seed)
            block = torch.from_numpy(tokens.reshape(count, batch, length + 1)).to(self.device)
            first = step
            self._drawn = (first, block)
        return block[step - first]


def _tokens(steps: range, *, batch: int, length: int, law: ChainLaw, seed: int) -> NDArray[np.int64]:
    return sample_batches(steps, batch=batch, length=length, law=law, seed=seed).tokens


def require_device(device: str) -> torch.device:
    """Return the device of that name.

    Raises
    ------
    InputError
        If it is neither "cpu" nor "cuda", or there is no such device here.
    """
    try:
        found = torch.device(device)
    except RuntimeError:
        found = None
    if found is None or found.type not in ("cpu", "cuda"):
        raise InputError(f"device must be cpu or cuda, not {device!r}")
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InputError(f"there is no device {device} here ({torch.cuda.device_count()} CUDA devices found): use cpu")
    return found


def final_metrics(model: Transformer, recipe: Recipe, engine: Engine = "torch") -> dict[str, float | None]:
    """Measure a trained model on fresh sequences of its own law, the same ones for every seed.

    Returns
    -------
    dict
        `regret_nats` over n = 1 … T and `regret_late_nats` over n > T/2, each with the standard error of the
        mean over `sequences` independent sequences (`…_se`), None where the start is stationary; and
        `log_loss_nats`.
    """
    law, weights = recipe.law(model.config.n_states), dict(model.named_parameters())
    last = _VALIDATION_BATCHES + _FINAL_BATCHES
    # One number for each sequence, a block of sequences at a time, so that memory stays flat.
    found: dict[str, list[NDArray[np.float64]]] = {"log_loss_nats": [], "regret_nats": [], "regret_late_nats": []}
    for first in range(_VALIDATION_BATCHES, last, _BATCHES_PER_BLOCK):
        sample, predictive = _held_out(law, recipe.length, first, min(first + _BATCHES_PER_BLOCK, last))
        probabilities = _probabilities(model.config, weights, sample.inputs, engine)
        found["log_loss_nats"].append(log_loss(probabilities, sample.targets).mean(axis=1))
        if predictive is not None:
            regret = kl_divergence(predictive, probabilities)  # (N, T)
            found["regret_nats"].append(regret.mean(axis=1))
            found["regret_late_nats"].append(regret[:, recipe.length // 2 :].mean(axis=1))
    metrics: dict[str, float | None] = {"sequences": _HELD_OUT_BATCH * _FINAL_BATCHES}
    for name, parts in found.items():
        metrics[name], metrics[f"{name}_se"] = _mean_and_se(np.concatenate(parts)) if parts else (None, None)
    return metrics


def _mean_and_se(values: NDArray[np.float64]) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def _held_out(law: ChainLaw, length: int, first: int, last: int) -> Held:
    """Return validation batches `first` to `last` − 1, and the Bayes predictive on them where that is add-α."""
    small = (last - first) * _HELD_OUT_BATCH * length <= _TOKENS_PER_DRAW
    return (_remembered if small else _draw_held_out)(law, length, first, last)


def _draw_held_out(law: ChainLaw, length: int, first: int, last: int) -> Held:
    batches = range(first, last)
    sample = sample_batches(batches, batch=_HELD_OUT_BATCH, length=length, law=law, seed=0, purpose="validation")
    if law.start != "uniform":
        return sample, None
    return sample, posterior_predictive(transition_counts(sample.inputs, law.n_states), law.concentration)


_remembered = lru_cache(maxsize=12)(_draw_held_out)  # what every row and every seed of a process is measured on


def _probabilities(
    config: ModelConfig, weights: Mapping[str, Tensor], tokens: NDArray[np.int64], engine: Engine
) -> NDArray[np.float64]:
    """Return the softmax of the model's logits, taken in float64, shape (N, T, K)."""
    weights = {name: tensor.detach().cpu() for name, tensor in weights.items()}
    folded = fold(weights) if config.foldable else None
    if engine == "kernel" and folded is not None:
        from icl_estimators.transformer.kernel import kernel_probabilities  # loads numba

        found = kernel_probabilities(folded, tokens)
        if found is not None:
            return found
    model = Transformer(config)
    model.load_state_dict(weights)
    parts = []
    with torch.inference_mode():
        for part in torch.from_numpy(tokens.copy()).split(_HELD_OUT_BATCH):
            logits = model(part) if folded is None else folded_logits(folded, part)
            parts.append(logits.double().softmax(dim=-1).numpy())
    return np.concatenate(parts)
