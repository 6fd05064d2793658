"""A training run in memory, which can be stopped and resumed after any step.

Step s of seed k draws its chains from an address of its own on the training stream, and the initial weights
have theirs. So what a run computes next depends on its weights, moments and step alone.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from icl_estimators.divergences import kl_divergence
from icl_estimators.sources import ChainLaw, sample_batches
from icl_estimators.transformer.config import ModelConfig
from icl_estimators.transformer.device import require_device
from icl_estimators.transformer.engines import Engine, require_engine
from icl_estimators.transformer.folded import fold
from icl_estimators.transformer.folded_loss import folded_loss
from icl_estimators.transformer.model import Transformer, initial_parameters
from icl_estimators.transformer.training.adam import Moments, adam_update
from icl_estimators.transformer.training.measuring import VALIDATION_BATCHES, held_out, probabilities_of
from icl_estimators.transformer.training.recipe import Recipe
from icl_estimators.validation import InputError

__all__ = ["MetricRow", "Trainer", "TrainingState"]

_TOKENS_PER_DRAW = 2**18


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
        that is not known exactly.
    learning_rate : float
        Step size of the last update; that of the first one at step 0.
    tokens_per_second : float
        Training tokens per second since the previous row or since the run was resumed; NaN at step 0.
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
        Where to continue; by default the run starts at step 0.

    Raises
    ------
    InputError
        If the lengths differ, `seed` is below 0, the device is unknown or absent, the engine cannot run the
        model here, or `state` belongs to a model of another size.

    Examples
    --------
    >>> from icl_estimators.transformer.training.updates import advance
    >>> config, recipe = ModelConfig(length=10), Recipe(steps=4, batch=8, length=10)
    >>> whole = Trainer(config, recipe)
    >>> advance([whole], 4)
    >>> half = Trainer(config, recipe)
    >>> advance([half], 2)
    >>> resumed = Trainer(config, recipe, state=half.state())
    >>> advance([resumed], 4)
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
                f"the recipe has sequences of {recipe.length} tokens, but the model has {config.length} distances: "
                "make them equal"
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
            raise InputError(f"the state holds {state.weights.numel()} weights, but the model has {flat.numel()}")
        self.step, self._last_row = state.step, state.last_row
        # One flat leaf: Adam is then one fused operation, and the gradient arrives in one piece.
        self.weights = state.weights.to(self.device, copy=True).requires_grad_()
        self.moments = Moments.of(state.first_moment, state.second_moment, state.step, self.device)
        self.loss_sum = state.loss_sum.to(self.device, copy=True)
        self._plain = None if config.foldable else Transformer(config).to(self.device)
        self._drawn = (0, torch.empty(0))  # first step of the block of batches at hand, and the block
        self._timed_from, self._clock = self.step, time.perf_counter()
        self._validation = held_out(recipe.law(config.n_states), config.length, 0, VALIDATION_BATCHES)

    def update(self) -> None:
        """Make one update by torch."""
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
                    predictive, probabilities_of(self.config, self.parameters(), sample.inputs, self.engine)
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
                from icl_estimators.sources.compiled_sampling import training_tokens as draw  # loads numba
            law = self.recipe.law(self.config.n_states)
            tokens = draw(range(step, step + count), batch=batch, length=length, law=law, seed=self.seed)
            block = torch.from_numpy(tokens.reshape(count, batch, length + 1)).to(self.device)
            first = step
            self._drawn = (first, block)
        return block[step - first]


def _tokens(steps: range, *, batch: int, length: int, law: ChainLaw, seed: int) -> NDArray[np.int64]:
    return sample_batches(steps, batch=batch, length=length, law=law, seed=seed).tokens
