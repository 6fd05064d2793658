"""The other commands as Python functions: ``exact``, ``report`` and ``train``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.validation import InputError, positive_int

if TYPE_CHECKING:
    import pandas as pd

    from icl_estimators.estimators import Estimator

__all__ = ["exact_risk", "train_transformer", "write_report"]


def exact_risk(
    estimators: Iterable[str | Estimator] | Estimator | str | None = None,
    length: int = 6,
    *,
    states: int = 3,
    concentration: float = 1.0,
    budget: bool = False,
    checkpoints: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    device: str = "cpu",
) -> pd.DataFrame:
    """Return the expected loss of estimators by enumeration of every prefix, without Monte Carlo error.

    Parameters
    ----------
    estimators : iterable of str or Estimator, Estimator, or str, optional
        Specs or your own objects, as for :func:`icl_estimators.compare`.
    length : int
        The longest context.
    states : int
        K.
    concentration : float
        α of the Dirichlet prior; the first token is uniform.
    budget : bool
        Return what the regret is made of instead: column `part` in the place of `metric`.
    checkpoints : path or sequence of paths
        Trained transformers, FILE or "NAME=FILE".
    device : str
        Where a transformer runs.

    Returns
    -------
    DataFrame
        Columns estimator, context_length (1 … `length`), metric or part, estimate; in nats where the metric is.

    Raises
    ------
    InputError
        If the prefixes are too many, a number is out of its range, or an estimator is unknown.
    ContractError
        If an estimator fails or breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator of the default list does not take `states` and is left out.

    Examples
    --------
    >>> found = exact_risk("add-one,unigram", 2)
    >>> found.query("estimator == 'add-one' and metric == 'kl_nats'").estimate.round(6).tolist()
    [0.265279, 0.245648]
    """
    from icl_estimators.api import warn_caller
    from icl_estimators.estimators import Estimator
    from icl_estimators.experiments.assembly import assemble
    from icl_estimators.experiments.exact import check_exact_budget
    from icl_estimators.experiments.exact_study import ExactStudy
    from icl_estimators.experiments.tuning import gamma_tuner
    from icl_estimators.sources import ChainLaw

    law = ChainLaw(states, concentration)
    length = positive_int(length, "length")
    check_exact_budget(law.n_states, length)
    single = estimators is not None and not isinstance(estimators, str) and isinstance(estimators, Estimator)
    made, _ = assemble(
        [estimators] if single else estimators,  # type: ignore[arg-type,list-item]
        n_states=law.n_states,
        concentration=law.concentration,
        warn=warn_caller,
        checkpoints=checkpoints,
        device=device,
        tune=gamma_tuner(law, length),
        check_length=length,
    )
    result = ExactStudy(made, length, law, budget).run()
    if not budget:
        return result.exact
    columns = ["estimator", "context_length", "part", "estimate"]
    return result.budget[columns]


def write_report(folder: str | os.PathLike[str], formats: Iterable[str] = ("html", "pdf")) -> list[Path]:
    """Build the report of a study again from the tables in its folder, as ``python -m icl_estimators.report`` does.

    Parameters
    ----------
    folder : path
        What a command or ``result.save(folder)`` wrote.
    formats : iterable of {"html", "pdf"}
        Besides report.md and the figures, which are always written.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    InputError
        If the folder holds no study, the tables do not fit together, or a package that a format needs is missing.
    """
    from icl_estimators.reporting.build import build_report

    wanted = (formats,) if isinstance(formats, str) else tuple(formats)
    try:
        return build_report(Path(folder), wanted)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"the tables and run.json in {folder} do not fit together ({type(error).__name__}: {error}): they may be "
            "incomplete or changed; run the command in run.json again"
        ) from error


def train_transformer(
    out: str | os.PathLike[str],
    *,
    seeds: int | Sequence[int] = 0,
    resume: bool = False,
    force: bool = False,
    **options: Any,
) -> list[Path]:
    """Train transformers of the article's form, one for each seed, as ``python -m icl_estimators.train`` does.

    Parameters
    ----------
    out : path
        Folder for weights, sidecars and metrics.
    seeds : int or sequence of int
        One training run each.
    resume : bool
        Go on from what was saved.
    force : bool
        Overwrite other runs of the same names.
    **options
        The command's other flags with underscores: `steps`, `batch`, `length`, `states`, `concentration`, `start`,
        `d_model`, `n_layers`, `n_heads`, `peak_lr`, `schedule`, `engine`, `device`, `threads`, `jobs`, …; see
        ``python -m icl_estimators.train --help``.

    Returns
    -------
    list of Path
        The weights, in the order of the seeds: what `checkpoints` takes.

    Raises
    ------
    InputError
        If an option is unknown or out of its range, or other runs are in the folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = train_transformer(folder, seeds=1, steps=3, batch=4, length=8, jobs=1)
    >>> paths[0].suffix
    '.safetensors'
    """
    from icl_estimators.train import train_runs

    chosen = (seeds,) if isinstance(seeds, int) else tuple(seeds)
    if not chosen:
        raise InputError("no seed is given: give one for each training run")
    return train_runs(Path(out), chosen, resume=resume, force=force, **options)
