"""What a study of observed sequences is, and its run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from icl_estimators.engine.executors import one_thread
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress
from icl_estimators.estimators import Estimator, rules_record
from icl_estimators.estimators.accepted_options import takes
from icl_estimators.estimators.capabilities import counted_order
from icl_estimators.estimators.identity import study_identity
from icl_estimators.estimators.registry import parse_spec, split_specs
from icl_estimators.experiments.assembly import Paths, assemble, estimators_record, gamma_record
from icl_estimators.experiments.observed import pooled_histories, too_long_for
from icl_estimators.experiments.observed_losses import ALONE, History
from icl_estimators.experiments.observed_statistics import statistics_tables
from icl_estimators.experiments.observed_tables import observed_tables
from icl_estimators.sources import ObservedSequences
from icl_estimators.sources.observed.matrix import transition_matrix
from icl_estimators.validation import InputError

__all__ = ["FOLDS", "ObservedOptions", "ObservedStudy"]

FOLDS = 10
"""Folds of the cross-validation, or as many as there are sequences."""


class ObservedOptions(TypedDict, total=False):
    """The options of a study of observed sequences; the flags of ``evaluate`` have the same names.

    Attributes
    ----------
    reference : str
        Spec or name of the estimator that the others are compared with; added if it is not among them.
    checkpoints : path or sequence of paths
        Trained transformers, FILE or "NAME=FILE".
    device : str
        Where a transformer runs.
    states : int
        K, if it is to be checked against the data.
    concentration : float
        α of the prior that `bayes` is to have.
    length, level, folds, matrix
        As for :class:`ObservedStudy`.
    pool : bool
        Also score the rules that need only counts with counts that carry over from other sequences.
    """

    reference: str
    checkpoints: Paths
    device: str
    states: int
    concentration: float
    length: int
    level: float
    pool: bool
    folds: int
    matrix: ArrayLike | None


@dataclass(frozen=True)
class ObservedStudy:
    """Everything that decides the numbers of a study of observed sequences.

    Attributes
    ----------
    estimators : tuple of Estimator
        The reference among them.
    reference : str
        Name of the estimator that the others are compared with.
    data : ObservedSequences
    concentration : float or None
        α of the prior that `bayes` has; None if it was not given.
    length : int
        W, the tokens of the window.
    level : float
        Confidence level of intervals.
    folds : int or None
        With how many folds of sequences counts carry over; None if they do not.
    matrix : ndarray of float64, shape (K, K), or None
        A transition matrix to test.
    """

    estimators: tuple[Estimator, ...]
    reference: str
    data: ObservedSequences
    concentration: float | None = None
    length: int = 100
    level: float = 0.95
    folds: int | None = None
    matrix: NDArray[np.float64] | None = None

    @classmethod
    def build(
        cls,
        data: ObservedSequences,
        estimators: Iterable[str | Estimator] | str | None = None,
        *,
        warn: Callable[[str], None],
        dashes: str = "",
        **options: Unpack[ObservedOptions],
    ) -> Self:
        """Make the estimators and return the study; they are checked when it runs.

        Parameters
        ----------
        data : ObservedSequences
        estimators : iterable of str or Estimator, or str, optional
            As for :func:`icl_estimators.compare`.
        warn : callable
            Takes one line for each estimator that is left out, and other warnings.
        dashes : str
            ``--`` if the options are flags; messages then use the flags' names.
        **options
            See :class:`ObservedOptions`.

        Raises
        ------
        InputError
            If `states` is not the data's K, `bayes` is asked for without `concentration` or `concentration` without
            `bayes`, `folds` is given without `pool` or is out of its range, there is one sequence to pool, or
            `matrix` is no transition matrix; or as :func:`icl_estimators.experiments.assembly.assemble`.

        Examples
        --------
        >>> import numpy as np
        >>> coin = ObservedSequences("coin", ("a", "b"), (np.array([0, 1, 1, 0]), np.array([1, 0])))
        >>> ObservedStudy.build(coin, "uniform", warn=print).record()["estimators"]
        ['uniform', 'add-one']
        """
        reference = options.get("reference", "add-one")
        states, concentration = options.get("states"), options.get("concentration")
        if states not in (None, data.n_states):
            raise InputError(f"{data.name} has {data.n_states} states, not {states}: leave {dashes}states out")
        items = split_specs(estimators) if isinstance(estimators, str) else estimators
        items = None if items is None else list(items)
        specs = [item for item in items or () if isinstance(item, str)] + [reference]
        if concentration is None and any(parse_spec(spec).head == "bayes" for spec in specs):
            raise InputError(f"bayes needs {dashes}concentration on observed sequences: their prior is not known")
        if concentration is not None and not any(takes(spec, "concentration") for spec in specs):
            raise InputError(
                f"{dashes}concentration does not apply to observed sequences without bayes among the estimators: "
                "leave it out"
            )
        if "folds" in options and not options.get("pool"):
            raise InputError(f"{dashes}folds applies only with {dashes}pool: give both")
        folds = None
        if options.get("pool"):
            folds = options.get("folds", min(FOLDS, len(np.unique(data.units))))
            pooled_histories(data, folds)  # before the work
        stated = options.get("matrix")
        matrix = None if stated is None else transition_matrix(stated, data.n_states)
        made, reference = assemble(
            items,
            n_states=data.n_states,
            concentration=1.0 if concentration is None else concentration,
            warn=warn,
            reference=reference,
            pooled=False,
            checkpoints=options.get("checkpoints", ()),
            device=options.get("device", "cpu"),
            dashes=dashes,
        )
        length, level = options.get("length", 100), options.get("level", 0.95)
        return cls(made, reference, data, concentration, length, level, folds, matrix)

    @property
    def left_out(self) -> tuple[str, ...]:
        """A line for what has no row: the estimator's form, or the length of the data, does not allow it."""
        lines = []
        longest = max(len(sequence) for sequence in self.data.sequences)
        for rule in self.estimators:
            if longest - 1 > self.length and too_long_for(rule, self.data):
                lines.append(
                    f"{rule.name}: no row for the whole history of {longest:,} tokens, whose predictions would not fit "
                    f"in memory; the row of the last {self.length:,} tokens remains"
                )
        if self.folds is not None:
            others = [rule.name for rule in self.estimators if counted_order(rule) is None]
            if others:
                lines.append(f"no pooled rows: {', '.join(others)} (only rules of counts can carry them over)")
        return tuple(lines)

    def record(self) -> dict[str, Any]:
        """Return everything that decides the study's numbers, as plain values: the `options` of run.json."""
        data = self.data
        return {
            "data": data.name,
            "data_sha256": _digest(data),
            "labels": list(data.labels),
            "n_sequences": len(data.sequences),
            "n_predictions": data.n_predictions,
            "longest_history": max(len(sequence) - 1 for sequence in data.sequences),
            "estimators": [estimator.name for estimator in self.estimators],
            "reference": self.reference,
            "concentration": self.concentration,
            "length": self.length,
            "states": data.n_states,
            "level": self.level,
            "pool": self.folds is not None,
            "folds": self.folds,
            "matrix": None if self.matrix is None else self.matrix.tolist(),
            **estimators_record(self.estimators),
        }

    def run(self, progress: Progress | None = None) -> StudyResult:
        """Run the study and make its tables.

        Parameters
        ----------
        progress : callable, optional
            Called with (what, done, total) after each row of losses.

        Raises
        ------
        InputError
            If two estimators have the same name.
        ContractError
            If an estimator fails or breaks the contract.
        """
        identity = study_identity(self.estimators)  # before they are asked for anything
        pooled = () if self.folds is None else pooled_histories(self.data, self.folds)
        with one_thread():
            tables = observed_tables(
                self.estimators,
                self.data,
                reference=self.reference,
                window=self.length,
                level=self.level,
                pooled=pooled,
                progress=progress,
            )
            tables |= statistics_tables(
                self.data,
                window=self.length,
                level=self.level,
                concentration=1.0 if self.concentration is None else self.concentration,
                pooled=pooled,
                matrix=self.matrix,
            )
        record = {
            "kind": "observed",
            "options": self.record(),
            "identity": identity,
            "data": self.data.record,
            "histories": {
                history.row_name(rule.name): {"estimator": rule.name, "history": history.kind}
                for rule in self.estimators
                for history in (ALONE, History("window", self.length), *pooled)
            },
        }
        return StudyResult(tables, record | gamma_record(self.estimators) | {"rules": rules_record(self.estimators)})


def _digest(data: ObservedSequences) -> str:
    """Return a digest of the sequences as they were read, whatever file or pipe they came from."""
    digest = hashlib.sha256(repr((data.labels, data.groups)).encode())
    for sequence in data.sequences:
        digest.update(len(sequence).to_bytes(8, "little") + sequence.astype("<i8").tobytes())
    return digest.hexdigest()
