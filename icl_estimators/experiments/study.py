"""What one Monte Carlo study is: everything that decides its numbers, and nothing that does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from icl_estimators.estimators import Estimator
from icl_estimators.estimators.training_runs import pooled_runs
from icl_estimators.sources import ChainLaw
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["UNIT", "Study", "blocks", "unit_size"]

UNIT = 50
"""Chains that are summarised together; summaries are merged in chain order."""

# What an estimator is given at once: large enough to pay for a call, small in memory.
_BLOCK_SEQUENCES = 2000
_BLOCK_CELLS = 600_000  # probabilities: as many sequences at K = 3 and T = 100
_UNIT_CELLS = 6_000_000


@dataclass(frozen=True)
class Study:
    """A study's design. On one kind of CPU and with the same versions, results depend on this alone: not on workers,
    order or the machine's load.

    Attributes
    ----------
    estimators : tuple of Estimator
        Distinct names; the reference among them. Two or more training runs of one recipe
        (:class:`icl_estimators.estimators.TrainingRun`) also get rows together.
    reference : str
        Name of the estimator, or recipe, that the others are compared with.
    law : ChainLaw
        Prior and start law of the chains.
    length : int
        T ≥ 1.
    chains, sequences_per_chain : int
        R ≥ 2 chains with S ≥ 1 sequences each, for risk and differences.
    decomposition_chains, decomposition_sequences : int
        The nested design of bias and variance; 0 chains leave it out, else at least 2 chains with 2 sequences.
    seed : int
        Of all streams.
    level : float
        Confidence level of intervals and bands.

    Raises
    ------
    InputError
        If a number is out of its range, there are no estimators, names repeat, the reference is not among them, or an
        estimator is for another K.
    """

    estimators: tuple[Estimator, ...]
    reference: str = "add-one"
    law: ChainLaw = field(default_factory=ChainLaw)
    length: int = 100
    chains: int = 2000
    sequences_per_chain: int = 10
    decomposition_chains: int = 500
    decomposition_sequences: int = 64
    seed: int = 0
    level: float = 0.95

    def __post_init__(self) -> None:
        def check(name: str, at_least: int) -> int:
            value = positive_int(getattr(self, name), name, at_least=at_least)
            object.__setattr__(self, name, value)  # a plain int, whatever kind of integer was given
            return value

        check("length", 1)
        if check("chains", 1) < 2:
            raise InputError(
                "chains must be at least 2: one chain has no standard error (the chain is the independent unit)"
            )
        check("sequences_per_chain", 1)
        check("seed", 0)
        object.__setattr__(self, "level", probability_level(self.level))
        if check("decomposition_chains", 0) == 1:
            raise InputError("decomposition_chains must be 0 (left out) or at least 2")
        if check("decomposition_sequences", 0) < 2 and self.decomposition_chains:
            raise InputError(
                "decomposition_sequences must be at least 2: bias and variance are told apart by how predictions "
                "vary within a chain; 64 keeps the share of cells with a single sequence small"
            )
        if not self.estimators:
            raise InputError("no estimators to compare: name at least one")
        for estimator in self.estimators:
            if estimator.n_states != self.law.n_states:
                raise InputError(
                    f"{estimator.name} is for {estimator.n_states} states, but the chains have {self.law.n_states}"
                )
        rows = [*self.names, *(f"{recipe}:recipe" for recipe in self.recipes)]
        for name in rows:
            if rows.count(name) > 1:
                raise InputError(f"two estimators are called {name}: name each once")
        if self.reference not in self.names:
            raise InputError(f"the reference {self.reference} is not among the estimators: {', '.join(self.names)}")

    @property
    def n_states(self) -> int:
        """K."""
        return self.law.n_states

    @property
    def cells(self) -> int:
        """T·K: probabilities predicted for one sequence."""
        return self.length * self.n_states

    @property
    def recipes(self) -> dict[str, tuple[str, ...]]:
        """The names of the training runs by recipe, where a recipe has two or more."""
        return pooled_runs(self.estimators)

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """Names of the estimators that are training runs of a recipe, in the order of the estimators."""
        runs = {name for names in self.recipes.values() for name in names}
        return tuple(estimator.name for estimator in self.estimators if estimator.name in runs)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all that has rows: the estimators and, after its training runs, the mean of each recipe."""
        names = [estimator.name for estimator in self.estimators]
        for recipe, runs in self.recipes.items():
            names.insert(names.index(runs[-1]) + 1, recipe)
        return tuple(names)

    def units(self, n_chains: int) -> list[slice]:
        """Return the rows of each unit among the first `n_chains` of the risk design, or among those of a block."""
        size = unit_size(self.sequences_per_chain, self.cells)
        return [slice(first, min(first + size, n_chains)) for first in range(0, n_chains, size)]

    @property
    def exact_posterior(self) -> bool:
        """Whether the posterior given a prefix is known exactly: only with a uniform first token."""
        return self.law.start == "uniform"


def unit_size(sequences_per_chain: int, cells: int = 300) -> int:
    """Return how many chains are summarised together: :data:`UNIT`, or fewer where their sequences fill memory.

    Parameters
    ----------
    sequences_per_chain : int
        S.
    cells : int
        T·K, probabilities predicted for one sequence.

    Examples
    --------
    >>> unit_size(64), unit_size(1000)
    (50, 20)
    """
    return max(1, min(UNIT, _UNIT_CELLS // (sequences_per_chain * cells)))


def blocks(n_chains: int, sequences_per_chain: int, cells: int = 300) -> Iterator[range]:
    """Cut chains 0 … R − 1 into blocks of work, each a whole number of units.

    The cut depends on the design alone, so that results do not depend on the number of workers. Parameters as for
    :func:`unit_size`.

    Examples
    --------
    >>> [len(block) for block in blocks(450, 10)]
    [200, 200, 50]
    """
    unit = unit_size(sequences_per_chain, cells)
    sequences = min(_BLOCK_SEQUENCES, _BLOCK_CELLS // cells)
    size = max(1, sequences // (unit * sequences_per_chain)) * unit
    for first in range(0, n_chains, size):
        yield range(first, min(first + size, n_chains))
