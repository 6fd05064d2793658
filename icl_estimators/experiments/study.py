"""The design of a Monte Carlo study: everything that decides its numbers, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Self, TypedDict, Unpack

from icl_estimators.engine.blocks import unit_size
from icl_estimators.estimators import Estimator, expect
from icl_estimators.estimators.capabilities import engine_of
from icl_estimators.estimators.identity import Sealed
from icl_estimators.estimators.registry import is_own
from icl_estimators.estimators.training_runs import pooled_runs
from icl_estimators.experiments.assembly import Paths, assemble, estimators_record
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.sources import ChainLaw, Source
from icl_estimators.validation import InputError, positive_int, positive_real, probability_level

__all__ = ["DEFAULTS", "KEPT", "ChainOptions", "Study", "StudyOptions"]

KEPT = ("chains",)
"""What a study can keep besides its tables."""


class ChainOptions(TypedDict, total=False):
    """Which estimators and chains a study is about; the flags of the commands have the same names.

    Attributes
    ----------
    checkpoints : path or sequence of paths
        Trained transformers, FILE or "NAME=FILE"; by default the one that ships for this K. Several are pooled where
        they are training runs of one recipe with seeds of their own.
    device : str
        Where a transformer runs.
    states : int
        K ≥ 2.
    concentration : float
        α of the Dirichlet prior.
    start : str
        Law of the first token, "uniform" or "stationary".
    chains, sequences_per_chain, length, seed, level
        As for :class:`Study`.
    """

    checkpoints: Paths
    device: str
    chains: int
    sequences_per_chain: int
    length: int
    states: int
    concentration: float
    start: str
    seed: int
    level: float


class StudyOptions(ChainOptions, total=False):
    """The options of a comparison.

    Attributes
    ----------
    reference : str
        Spec or name of the estimator that the others are compared with; added if it is not among them.
    decomposition_chains, decomposition_sequences, exact_checks, keep, target_se
        As for :class:`Study`.
    """

    reference: str
    exact_checks: bool
    target_se: float | None
    keep: Sequence[str]
    decomposition_chains: int
    decomposition_sequences: int


@dataclass(frozen=True)
class Study:
    """A study's design. On one kind of CPU and with the same versions, results depend only on this, not on
    workers, order or the machine's load.

    Attributes
    ----------
    estimators : tuple of Estimator
        Distinct names; the reference among them. Two or more training runs of one recipe
        (:class:`icl_estimators.estimators.TrainingRun`) also get rows together.
    reference : str
        Name of the estimator, or recipe, that the others are compared with.
    chains, sequences_per_chain : int
        R ≥ 2 independent chains with S ≥ 1 sequences each, for risk and differences.
    decomposition_chains, decomposition_sequences : int
        The nested design of bias and variance, on separate chains: at least 2 chains with 2 sequences, or 0 chains to
        omit it.
    length : int
        T ≥ 1 tokens are read.
    source : Source
        What draws the chains and their sequences.
    seed : int
        Of all streams.
    level : float
        Confidence level of intervals and bands.
    exact_checks : bool
        Whether all prefixes of short lengths are asked for, which checks the risk and gives the exact budget.
    target_se : float, optional
        A standard error, in nats, of the mean KL and the mean regret: the summary says how many chains reach it.
    keep : tuple of {"chains"}
        What else is kept: one value for each chain, in chains.csv.

    Raises
    ------
    InputError
        If a number is out of its range, `keep` names something else, there are no estimators, names repeat, the
        reference is not among them, or an estimator is for another K.
    """

    estimators: tuple[Estimator, ...]
    reference: str = "add-one"
    chains: int = 2000
    sequences_per_chain: int = 10
    decomposition_chains: int = 500
    decomposition_sequences: int = 64
    length: int = 100
    source: Source = field(default_factory=ChainLaw)
    seed: int = 0
    level: float = 0.95
    exact_checks: bool = True
    target_se: float | None = None
    keep: Sequence[str] = ()

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
                "decomposition_sequences must be at least 2: bias and variance are separated by how predictions "
                "vary within a chain; 64 keeps the share of cells with a single sequence small"
            )
        if self.target_se is not None:
            object.__setattr__(self, "target_se", positive_real(self.target_se, "target_se"))
        kept = (self.keep,) if isinstance(self.keep, str) else tuple(dict.fromkeys(self.keep))
        object.__setattr__(self, "keep", kept)
        for name in kept:
            if name not in KEPT:
                raise InputError(f"{name!r} cannot be kept: choose from {', '.join(KEPT)}")
        if not self.estimators:
            raise InputError("no estimators to compare: give at least one")
        for estimator in self.estimators:
            if estimator.n_states != self.source.n_states:
                raise InputError(
                    f"{estimator.name} is for {estimator.n_states} states, but the chains have {self.source.n_states}"
                )
        rows = [*self.names, *(f"{recipe}:recipe" for recipe in self.recipes)]
        for name in rows:
            if rows.count(name) > 1:
                raise InputError(f"two estimators are called {name}: give each once")
        if self.reference not in self.names:
            raise InputError(f"the reference {self.reference} is not among the estimators: {', '.join(self.names)}")

    @classmethod
    def build(
        cls,
        estimators: Iterable[str | Estimator] | str | None = None,
        *,
        warn: Callable[[str], None],
        dashes: str = "",
        **options: Unpack[StudyOptions],
    ) -> Self:
        """Make the estimators, check each against the contract once at this T, and return the study.

        All commands and Python functions start here.

        Parameters
        ----------
        estimators : iterable of str or Estimator, or str, optional
            Specs or your own objects, or specs in one string, separated by commas; by default every estimator of the
            default list that takes this K, γ of `construction-softmax` tuned to the law and the length.
        warn : callable
            Takes one line for each estimator that is left out, and other warnings.
        dashes : str
            ``--`` if the options are flags; messages then use the flags' names.
        **options
            See :class:`StudyOptions`.

        Raises
        ------
        InputError
            If an option is out of its range, a name is unknown, or checkpoints or another device are given but no
            estimator uses them.
        ContractError
            If an estimator breaks the contract.

        Examples
        --------
        >>> Study.build("bigram", length=12, warn=print).names
        ('bigram', 'add-one')
        """
        unknown = sorted(options.keys() - StudyOptions.__annotations__.keys())
        if unknown:
            raise TypeError(f"{unknown[0]!r} is not an option of a study: choose from {', '.join(sorted(DEFAULTS))}")
        given: dict[str, Any] = {**DEFAULTS, **options}
        nested_is_given = "decomposition_chains" in options
        source = ChainLaw(*(given.pop(name) for name in ("states", "concentration", "start")))
        given["estimators"], given["reference"] = assemble(
            estimators,
            n_states=source.n_states,
            concentration=source.concentration,
            warn=warn,
            reference=given["reference"],
            checkpoints=given.pop("checkpoints"),
            device=given.pop("device"),
            tune=gamma_tuner(source, given["length"]),
            check_length=given["length"],
            dashes=dashes,
        )
        if not nested_is_given and any(is_own(estimator) for estimator in given["estimators"]):
            given["decomposition_chains"] = _scaled(given["decomposition_chains"], given["chains"])
        study = cls(source=source, **given)
        study.announce()
        return study

    def announce(self) -> None:
        """Tell the estimators how much the study will ask of them; their choice of engine is part of the record."""
        expect(self.estimators, self.sequences, self.length)

    def sealed(self, shared: object) -> Sealed:
        """Return `shared` as it is sent to workers: only workers with the same sources of the estimators accept it."""
        return Sealed(shared, self.estimators)

    def record(self) -> dict[str, Any]:
        """Return everything that decides the study's numbers, as plain values: the `options` of run.json."""
        plain: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        by_kernel = [rule.name for rule in self.estimators if engine_of(rule) == "kernel"]
        record: dict[str, Any] = {}
        for name, value in plain.items():
            record |= self.source.record() if name == "source" else {name: value}
        kept = list(record.pop("keep"))
        if record["target_se"] is None:
            del record["target_se"]
        return {
            **record,
            "estimators": [estimator.name for estimator in self.estimators],
            "checkpoints": list(self.checkpoints),
            "recipes": {recipe: list(runs) for recipe, runs in self.recipes.items()},
            **estimators_record(self.estimators),
            **({"keep": kept} if kept else {}),
            **({"kernel": by_kernel} if by_kernel else {}),  # the last bits are others than torch's
        }

    @property
    def sequences(self) -> int:
        """How many sequences are predicted, over both designs."""
        nested = self.decomposition_chains * self.decomposition_sequences
        return self.chains * self.sequences_per_chain + nested

    @property
    def n_states(self) -> int:
        """K."""
        return self.source.n_states

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
        """Names of everything that has rows: the estimators and, after its training runs, the mean of each recipe."""
        names = [estimator.name for estimator in self.estimators]
        for recipe, runs in self.recipes.items():
            names.insert(names.index(runs[-1]) + 1, recipe)
        return tuple(names)

    @property
    def most_prefixes(self) -> int | None:
        """How many sequences an exact check may ask for; None for as many as it takes, where no estimator is your own.

        An estimator of your own may be slow. Then enumerations ask for no more sequences than the risk design.
        """
        if not self.exact_checks:
            return 0
        return self.chains * self.sequences_per_chain if self.has_own else None

    @property
    def has_own(self) -> bool:
        """Whether an estimator is a person's own, and so may be slow."""
        return any(is_own(estimator) for estimator in self.estimators)

    def units(self, n_chains: int) -> list[slice]:
        """Return the rows of each unit among the first `n_chains` of the risk design, or among those of a block."""
        size = unit_size(self.sequences_per_chain, self.cells)
        return [slice(first, min(first + size, n_chains)) for first in range(0, n_chains, size)]

    @property
    def exact_posterior(self) -> bool:
        """Whether the posterior given a prefix is known exactly."""
        return self.source.exact_posterior


def _scaled(chains: int, of: int) -> int:
    """Return a default number of chains in the proportion of a study to the default one, 2 or more."""
    return chains if of >= Study.chains else max(2, chains * of // Study.chains)


DEFAULTS: dict[str, Any] = {
    "checkpoints": (),
    "device": "cpu",
    "states": 3,
    "concentration": 1.0,
    "start": "uniform",
} | {field.name: field.default for field in fields(Study) if field.name in StudyOptions.__annotations__}
"""The defaults of :class:`StudyOptions`."""
