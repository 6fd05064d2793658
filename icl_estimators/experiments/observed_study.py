"""What a study of observed sequences is, and its run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self, TypedDict, Unpack

from icl_estimators.engine.executors import one_thread
from icl_estimators.engine.result import StudyResult
from icl_estimators.estimators import Estimator, rules_record
from icl_estimators.estimators.accepted_options import takes
from icl_estimators.estimators.identity import study_identity
from icl_estimators.estimators.registry import parse_spec, split_specs
from icl_estimators.experiments.assembly import Paths, assemble, estimators_record, gamma_record
from icl_estimators.experiments.observed_tables import observed_tables
from icl_estimators.sources import ObservedSequences
from icl_estimators.validation import InputError

__all__ = ["ObservedOptions", "ObservedStudy"]


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
    length, level
        As for :class:`ObservedStudy`.
    """

    reference: str
    checkpoints: Paths
    device: str
    states: int
    concentration: float
    length: int
    level: float


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
    """

    estimators: tuple[Estimator, ...]
    reference: str
    data: ObservedSequences
    concentration: float | None = None
    length: int = 100
    level: float = 0.95

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
            `bayes`; or as :func:`icl_estimators.experiments.assembly.assemble`.

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
        return cls(made, reference, data, concentration, options.get("length", 100), options.get("level", 0.95))

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
            **estimators_record(self.estimators),
        }

    def run(self) -> StudyResult:
        """Run the study and make its tables.

        Raises
        ------
        InputError
            If two estimators have the same name.
        ContractError
            If an estimator fails or breaks the contract.
        """
        identity = study_identity(self.estimators)  # before they are asked for anything
        with one_thread():
            tables = observed_tables(
                self.estimators, self.data, reference=self.reference, window=self.length, level=self.level
            )
        record = {"kind": "observed", "options": self.record(), "identity": identity, "data": self.data.record}
        return StudyResult(tables, record | gamma_record(self.estimators) | {"rules": rules_record(self.estimators)})


def _digest(data: ObservedSequences) -> str:
    """Return a digest of the sequences as they were read, whatever file or pipe they came from."""
    digest = hashlib.sha256(repr(data.labels).encode())
    for sequence in data.sequences:
        digest.update(repr(sequence.tolist()).encode())
    return digest.hexdigest()
