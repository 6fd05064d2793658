"""What one Monte Carlo study is: everything that decides its numbers, and nothing that does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from icl_estimators.chains import ChainLaw
from icl_estimators.estimators import Estimator
from icl_estimators.validation import InputError, positive_int, probability_level

__all__ = ["UNIT", "Study", "blocks"]

UNIT = 50
"""Chains that are summarised together; summaries are merged in chain order."""

_BLOCK_SEQUENCES = 2000  # what an estimator is given at once: large enough to pay for a call, small in memory


@dataclass(frozen=True)
class Study:
    """A study's design. Results depend on this alone: not on workers, order or the machine's load.

    Attributes
    ----------
    estimators : tuple of Estimator
        Distinct names; the reference among them.
    reference : str
        Name of the estimator that the others are compared with.
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
    checkpoints : tuple of str
        Names of two or more of the estimators that are training runs of one recipe: they also get rows together.

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
    checkpoints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        positive_int(self.length, "length")
        if positive_int(self.chains, "chains") < 2:
            raise InputError(
                "chains must be at least 2: one chain has no standard error (the chain is the independent unit)"
            )
        positive_int(self.sequences_per_chain, "sequences_per_chain")
        positive_int(self.seed, "seed", at_least=0)
        probability_level(self.level)
        if positive_int(self.decomposition_chains, "decomposition_chains", at_least=0) == 1:
            raise InputError("decomposition_chains must be 0 (left out) or at least 2")
        if self.decomposition_chains:
            sequences = positive_int(self.decomposition_sequences, "decomposition_sequences")
            if sequences < 2:
                raise InputError(
                    "decomposition_sequences must be at least 2: bias and variance are told apart by how predictions "
                    "vary within a chain; 64 keeps the share of cells with a single sequence small"
                )
        names = [estimator.name for estimator in self.estimators]
        if not names:
            raise InputError("no estimators to compare: name at least one")
        for estimator in self.estimators:
            if names.count(estimator.name) > 1:
                raise InputError(f"two estimators are called {estimator.name}: name each once")
            if estimator.n_states != self.law.n_states:
                raise InputError(
                    f"{estimator.name} is for {estimator.n_states} states, but the chains have {self.law.n_states}"
                )
        if self.reference not in names:
            raise InputError(f"the reference {self.reference} is not among the estimators: {', '.join(names)}")

    @property
    def n_states(self) -> int:
        """K."""
        return self.law.n_states

    @property
    def recipe(self) -> str:
        """What the mean over training runs is called."""
        return self.checkpoints[0].partition(":")[0] if self.checkpoints else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all that has rows: the estimators and, after its training runs, their mean."""
        names = [estimator.name for estimator in self.estimators]
        if self.checkpoints:
            names.insert(names.index(self.checkpoints[-1]) + 1, self.recipe)
        return tuple(names)

    @property
    def exact_posterior(self) -> bool:
        """Whether the posterior given a prefix is known exactly: only with a uniform first token."""
        return self.law.start == "uniform"


def blocks(n_chains: int, sequences_per_chain: int) -> Iterator[range]:
    """Cut chains 0 … R − 1 into blocks of work, each a whole number of units.

    The cut depends on the design alone, so that results do not depend on the number of workers.

    Examples
    --------
    >>> [len(block) for block in blocks(450, 10)]
    [200, 200, 50]
    """
    units = max(1, _BLOCK_SEQUENCES // (UNIT * sequences_per_chain))
    size = units * UNIT
    for first in range(0, n_chains, size):
        yield range(first, min(first + size, n_chains))
