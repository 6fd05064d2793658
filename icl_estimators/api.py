"""The commands as Python functions: :func:`compare` is ``evaluate``, :func:`effective_smoothing` is ``smoothing``."""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, get_type_hints

import numpy as np

from icl_estimators.engine.reading import read_folder
from icl_estimators.engine.result import StudyResult
from icl_estimators.engine.running import Progress
from icl_estimators.estimators import Estimator, tolerance_lines
from icl_estimators.experiments.assembly import Paths, assemble
from icl_estimators.experiments.compare import run_study
from icl_estimators.experiments.cost import cost_line
from icl_estimators.experiments.identification import IdentificationOptions, identification_study
from icl_estimators.experiments.observed import unchecked_line
from icl_estimators.experiments.observed_study import ObservedStudy
from icl_estimators.experiments.predictions import Given, drawn_sequences, given_sequences, prediction_columns
from icl_estimators.experiments.recorded import FINDINGS, given_options, refuse_other_findings
from icl_estimators.experiments.smoothing import SmoothingDesign, run_smoothing
from icl_estimators.experiments.study import DEFAULTS, ChainOptions, Study, StudyOptions
from icl_estimators.experiments.tuning import gamma_tuner
from icl_estimators.predict import attention_on
from icl_estimators.pseudo_counts import FAMILIES, GROUPINGS, Grouping
from icl_estimators.reading import kind_of
from icl_estimators.reporting.terminal.comparison import summary_text
from icl_estimators.reporting.terminal.exact import budget_text, exact_text
from icl_estimators.reporting.terminal.identity import identity_rows, identity_text
from icl_estimators.reporting.terminal.smoothing import smoothing_text
from icl_estimators.sources import ChainLaw, ObservedSequences
from icl_estimators.sources.observed.prompt import read_prompt
from icl_estimators.validation import InputError, as_tokens, positive_int
from icl_estimators.workers import refuse_in_worker

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from icl_estimators.reporting.compact import CompactTable
    from icl_estimators.reporting.prompt_attention import PromptAttention

__all__ = [
    "Comparison",
    "Enumeration",
    "Identification",
    "Smoothing",
    "attention",
    "compare",
    "compare_observed",
    "effective_smoothing",
    "identify_estimator",
    "predictions",
    "read_results",
]

Face = TypeVar("Face", bound=Callable[..., object])


class Comparison(StudyResult):
    """What a comparison found; a table is an attribute of the result, a DataFrame: ``.risk``, ``.differences``, …"""

    @classmethod
    def of(cls, found: StudyResult) -> Self:
        """Return what a study found, with a summary."""
        return cls(found.tables, found.run)

    def summary(self) -> str:
        """Return the headline figures as text: means and intervals by context length, differences, infinite shares."""
        return summary_text(self.records, self.run, tolerance_lines(self.run["options"].get("tolerances", {})))

    def table(
        self, lengths: Iterable[int] | None = None, metric: str | None = None, *, specs: bool = False
    ) -> CompactTable:
        """Return a compact table for a paper: estimators in ranked order, the mean, and a few context lengths.

        Numbers are rounded to the second significant digit of their standard error, in one notation for each interval.

        Parameters
        ----------
        lengths : iterable of int, optional
            Context lengths that have a column; by default 3, 12, 50 and T, as far as they are there.
        metric : str, optional
            A metric of `risk`; by default regret, KL where no Bayes rule is exact, log loss on observed data.
        specs : bool
            Name estimators as in the tables, ``construction-softmax:2.2``, not as in the report.

        Returns
        -------
        CompactTable
            With ``to_latex()``, ``to_markdown()``, ``to_html()``, ``to_typst()`` and ``to_frame()``.

        Raises
        ------
        InputError
            If the study has no table `risk`, or not this metric or context length; or if a length is given twice.

        Examples
        --------
        >>> result = compare("unigram,add-one", chains=50, length=8, sequences_per_chain=2, decomposition_chains=0)
        >>> print(result.table(lengths=[4]).to_frame().columns.str.replace("\xa0", " ").tolist())
        ['mean over n [95 %]', 'n = 4']
        >>> result.table().to_frame().iloc[0].tolist()
        ['0, by definition', '0', '0']
        """
        from icl_estimators.reporting.compact import compact_table
        from icl_estimators.reporting.results import Results

        frames = {}
        if "risk" in self.tables:
            frame = self.tables["risk"].frame()
            frames["risk"] = frame.assign(context_length=frame["context_length"].astype(str))
        return compact_table(Results(frames, self.run), lengths, metric, specs=specs)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.summary())}</pre>"


class Smoothing(Comparison):
    """What a smoothing study found: tables `smoothing` and, where there is a trained model, `interventions`."""

    def summary(self) -> str:
        """Return the headline figures as text: pseudo-counts by visits, the best family, what interventions do."""
        return smoothing_text(self.records, self.run)


class Enumeration(Comparison):
    """What ``exact`` found, read back from its folder: tables `exact` and, where it was asked for, `budget`."""

    def summary(self) -> str:
        """Return the risk by context length, and what the regret is made of, as text."""
        texts = [exact_text(self.records["exact"], self.run)]
        if "budget" in self.tables:
            texts.append(budget_text(self.records["budget"], self.run))
        return "\n\n".join(texts)


class Identification(Comparison):
    """What a study found about the estimators that were asked about; the tables are those of a comparison."""

    @classmethod
    def of(cls, found: StudyResult) -> Self:
        """Return what a study found; run.json says that it is an identification."""
        return cls(found.tables, {**found.run, "kind": "identification"})

    @property
    def subjects(self) -> list[str]:
        """What was asked about; training runs of one recipe stand under its name."""
        pooled = {name for runs in self.run["options"]["recipes"].values() for name in runs}
        return [name for name in self.run["subjects"] if name not in pooled]

    def summary(self) -> str:
        """Return one screen of text for each estimator that was asked about."""
        return "\n\n\n".join(identity_text(self.records, self.run, name) for name in self.subjects)

    def rows(self) -> list[dict[str, Any]]:
        """Return the numbers of the summary, and those at every context length, as rows."""
        return [row for name in self.subjects for row in identity_rows(self.records, name)]


def _shows(options: type) -> Callable[[Face], Face]:
    """Show the options that a function hands on to :meth:`Study.build`, with their defaults, in its signature."""

    def shown(face: Face) -> Face:
        signature = inspect.signature(face)
        own = [item for item in signature.parameters.values() if item.kind is not item.VAR_KEYWORD]
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS[name], annotation=kind)
            for name, kind in get_type_hints(options).items()
        ]
        face.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return face

    return shown


@_shows(StudyOptions)
def compare(
    estimators: Iterable[str | Estimator] | str | None = None,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Unpack[StudyOptions],
) -> Comparison:
    """Compare estimators on freshly sampled chains.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        Specs or your own objects, or specs in one string, separated by commas; by default every estimator of the
        default list that takes `states`, γ of `construction-softmax` tuned to the law and the length.
    jobs : int
        Processes. Results are the same bits for any number, on the same kind of CPU and with the same versions.
    progress : callable, optional
        Called with (what, done, total) after each block.
    **options
        What the study is, under the names of the flags of ``evaluate``: `reference`, `checkpoints`, `device`, `chains`,
        `sequences_per_chain`, `decomposition_chains`, `decomposition_sequences`, `length`, `states`, `concentration`,
        `start`, `seed`, `level`, `exact_checks`, `keep`. :class:`~icl_estimators.experiments.study.StudyOptions` and
        :class:`~icl_estimators.experiments.study.Study` explain them. The entry `options` of run.json may be given as
        it is, ``compare(**run["options"])``: what it records of weights and data must agree with what is there now.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        If an option is out of its range, an estimator is unknown, or fails at each of several tries; or if several
        jobs are asked for where they cannot start: in a worker process, which is what importing a module does that
        calls this at its top level, or in a program that was read from standard input; if `checkpoints` or another
        `device` is given but no estimator uses it.
    ContractError
        If an estimator breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator of the default list does not take `states` and is left out.

    Examples
    --------
    >>> result = compare(["bigram", "add-one"], chains=100, sequences_per_chain=1, length=12, decomposition_chains=0)
    >>> result.risk.query("estimator == 'add-one' and context_length == 1 and metric == 'regret_nats'").estimate.item()
    0.0
    """
    refuse_in_worker(jobs)
    given, found = given_options({"estimators": estimators, **options})
    study = Study.build(given.pop("estimators"), warn=warn_caller, **given)
    refuse_other_findings(found, study.record())
    _say_cost(study)
    return Comparison.of(run_study(study, jobs=jobs, progress=progress))


def compare_observed(
    data: ObservedSequences,
    /,
    estimators: Iterable[str | Estimator] | str | None = None,
    *,
    pool: bool = False,
    folds: int | None = None,
    matrix: ArrayLike | None = None,
    reference: str = "add-one",
    length: int = 100,
    level: float = 0.95,
    states: int | None = None,
    concentration: float | None = None,
    checkpoints: Paths = (),
    device: str = "cpu",
    progress: Progress | None = None,
    **recorded: Any,
) -> Comparison:
    """Compare estimators on observed sequences by prequential log loss, as ``evaluate --sequences`` does.

    Parameters
    ----------
    data : ObservedSequences
        As :func:`icl_estimators.observed` returns them.
    estimators : iterable of str or Estimator, or str, optional
        As for :func:`compare`.
    pool : bool
        Also score the rules that need only counts with counts that carry over: from all earlier sequences, and from
        the sequences of other folds.
    folds : int, optional
        With `pool`: folds of the cross-validation, by default 10, or one for each sequence if there are fewer.
    matrix : array-like of float, shape (K, K), optional
        A transition matrix to test, in the order of ``data.labels``.
    reference : str
        Spec or name of the estimator that the others are compared with; added if it is not among them.
    length : int
        W, the last tokens that a transformer reads; every other rule also has a row for them.
    level : float
        Of intervals.
    states : int, optional
        K, if it is to be checked against the data.
    concentration : float, optional
        α of the prior that `bayes` is to have.
    checkpoints, device
        As for :func:`compare`.
    progress : callable, optional
        Called with (what, done, total) after each row of losses.
    **recorded
        What the entry `options` of run.json has besides, ``compare_observed(data, **run["options"])``: it must agree
        with the data and weights that are there now.

    Returns
    -------
    Comparison
        With the tables `risk`, `differences`, `pairs`, `series`, `cumulative`, `transitions`, `concentration`,
        `concentration_profile`, `orders` and `likelihood_ratio`.

    Raises
    ------
    InputError
        If an option does not fit the data, or an estimator is unknown.
    ContractError
        If an estimator fails or breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator is left out, or has no row for a history that it cannot read.

    Examples
    --------
    >>> import icl_estimators as icl
    >>> found = compare_observed(icl.sources.elnino(), "add-one,unigram")
    >>> found.risk.set_index("estimator").estimate.round(4)["add-one"].item()
    0.6608
    """
    given: dict[str, Any] = {
        name: value
        for name, value in (("folds", folds), ("matrix", matrix), ("states", states), ("concentration", concentration))
        if value is not None
    }
    study = ObservedStudy.build(
        data,
        estimators,
        warn=warn_caller,
        pool=pool,
        reference=reference,
        length=length,
        level=level,
        checkpoints=checkpoints,
        device=device,
        **given,
    )
    unknown = sorted(recorded.keys() - FINDINGS)
    if unknown:
        raise TypeError(f"compare_observed() got an unexpected keyword argument {unknown[0]!r}")
    refuse_other_findings(recorded, study.record())
    for line in (*unchecked_line(study.estimators, data, study.length), *study.left_out):
        warn_caller(line)
    return Comparison.of(study.run(progress))


@_shows(IdentificationOptions)
def identify_estimator(
    asked: str | Estimator = "transformer",
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Unpack[IdentificationOptions],
) -> Identification:
    """Find which estimator a model is like, and where it loses against Bayes.

    Parameters
    ----------
    asked : str or Estimator
        A spec or your own object.
    jobs, progress
        As for :func:`icl_estimators.compare`.
    **options
        As for :func:`icl_estimators.compare`, without `reference` and the nested design.

    Returns
    -------
    Identification
        `summary()` is the screen that ``python -m icl_estimators.identify`` prints.

    Raises
    ------
    InputError
        If an option is out of its range or a name unknown; if `checkpoints` or another `device` is given but the
        estimator does not use it.
    ContractError
        If the estimator fails or breaks the contract.

    Examples
    --------
    >>> found = identify_estimator("add-constant:0.37", chains=60, length=10, sequences_per_chain=2)
    >>> nearest = found.nearest.query("measure == 'total_variation' and context_length == 'mean'")
    >>> bool(nearest.estimate.item() < 1e-6)
    True
    """
    refuse_in_worker(jobs)
    study = identification_study(asked, warn=warn_caller, **options)
    _say_cost(study)
    return Identification.of(run_study(study, jobs=jobs, progress=progress))


@_shows(ChainOptions)
def effective_smoothing(
    estimators: Iterable[str | Estimator] | str | None = None,
    *,
    by: Sequence[Grouping] = GROUPINGS,
    families: Sequence[str] = FAMILIES,
    interventions: bool = True,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Unpack[ChainOptions],
) -> Smoothing:
    """Find which pseudo-count each estimator acts like.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        As for :func:`icl_estimators.compare`. The add-one rule is added: its pseudo-count must come out as 1.
    by : sequence of {"overall", "context-length", "visits"}
        Over all prefixes, and by their length and by n_v.
    families : sequence of str
        Other rules to compare with the plain pseudo-count over all prefixes; empty for none.
    interventions : bool
        Whether to replace parts of a trained model's mechanism.
    jobs, progress
        As for :func:`icl_estimators.compare`.
    **options
        As for :func:`icl_estimators.compare`, without `reference` and the nested design.

    Returns
    -------
    Smoothing

    Raises
    ------
    InputError
        If an option is out of its range or a name unknown; if `checkpoints` or another `device` is given but no
        estimator uses it.
    ContractError
        If an estimator fails or breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator of the default list does not take `states` and is left out.

    Examples
    --------
    >>> found = effective_smoothing(["add-constant:0.5"], by=["overall"], families=[], chains=20, length=12)
    >>> rows = found.smoothing.query("parameter == 'pseudo_count'").set_index("estimator")
    >>> rows.estimate.round(9).to_dict()
    {'add-constant:0.5': 0.5, 'add-one': 1.0}
    """
    refuse_in_worker(jobs)
    given, found = given_options({"estimators": estimators, **options})
    rules = given.pop("estimators")
    study = Study.build(rules, warn=warn_caller, reference="add-one", decomposition_chains=0, **given)
    refuse_other_findings(found, study.record())
    design = SmoothingDesign(study, tuple(by), tuple(families), interventions)
    return Smoothing.of(run_smoothing(design, jobs=jobs, progress=progress))


_OF_CHAINS: dict[str, Any] = {
    "sequences_per_chain": 1,
    "length": 100,
    "concentration": 1.0,
    "start": "uniform",
    "seed": 0,
}


def predictions(
    estimators: Iterable[str | Estimator] | str | None = None,
    sequences: ObservedSequences | ArrayLike | Iterable[ArrayLike] | None = None,
    *,
    prompt: str | None = None,
    chains: int | None = None,
    states: int | None = None,
    sequences_per_chain: int | None = None,
    length: int | None = None,
    concentration: float | None = None,
    start: str | None = None,
    seed: int | None = None,
    checkpoints: Paths = (),
    device: str = "cpu",
) -> pd.DataFrame:
    """Return every estimator's prediction after every prefix of some sequences.

    Give exactly one of `sequences`, `prompt` and `chains`.

    Parameters
    ----------
    estimators : iterable of str or Estimator, or str, optional
        As for :func:`compare`. γ of `construction-softmax:tuned` has a law to be tuned to only with `chains`.
    sequences : ObservedSequences, or array-like of int of shape (T,) or (N, T), or iterable of those of shape (T,)
        Sequences of your own, of any lengths; integers are states from 0.
    prompt : str
        As for the command ``predict``: ABACABADA, or labels separated by commas or spaces; ^ABACA with a sentinel.
    chains : int
        R fresh chains, the ones that :func:`compare` draws for the same options.
    states : int, optional
        K, by default 3; a prompt and observed sequences have their own.
    sequences_per_chain, length, concentration, start, seed : optional
        With `chains` only: S = 1 sequence of T = 100 tokens from each chain, α = 1, a uniform start and seed 0.
    checkpoints, device
        As for :func:`compare`.

    Returns
    -------
    DataFrame
        `estimator`, `sequence` (its number from 0; with `chains`, sequence s of chain r is r·S + s),
        `context_length` n, `token` (what may come next: a state's number or label), `probability`, and with `chains`
        also `truth`, the entry of the chain's own row. One row for each estimator, sequence, prefix and token, about
        100 bytes each.

    Raises
    ------
    InputError
        If not exactly one of `sequences`, `prompt` and `chains` is given, an option does not apply or is out of its
        range, a sequence is empty or has a token that is not a state, or a name is unknown.
    ContractError
        If an estimator fails or breaks the contract.

    Warns
    -----
    UserWarning
        If an estimator of the default list does not take K and is left out.

    Examples
    --------
    >>> found = predictions("bigram,add-one", prompt="ABA")
    >>> found.query("estimator == 'add-one' and context_length == 3")[["token", "probability"]].values.tolist()
    [['A', 0.3333333333333333], ['B', 0.6666666666666666]]
    >>> list(predictions("uniform", chains=2, length=4).columns)
    ['estimator', 'sequence', 'context_length', 'token', 'probability', 'truth']
    """
    import pandas as pd

    ways = {"sequences": sequences, "prompt": prompt, "chains": chains}
    if sum(value is not None for value in ways.values()) != 1:
        raise InputError(f"give exactly one of {', '.join(ways)}")
    asked = {
        "sequences_per_chain": sequences_per_chain,
        "length": length,
        "concentration": concentration,
        "start": start,
        "seed": seed,
    }
    if chains is None:
        unused = [name for name, value in asked.items() if value is not None]
        if unused:
            raise InputError(f"{unused[0]} applies to chains only: leave it out")
    design: dict[str, Any] = {name: _OF_CHAINS[name] if value is None else value for name, value in asked.items()}
    law = None
    if chains is not None:
        law = ChainLaw(3 if states is None else states, design["concentration"], design["start"])
        given = drawn_sequences(
            law, chains, sequences_per_chain=design["sequences_per_chain"], length=design["length"], seed=design["seed"]
        )
    elif prompt is not None:
        tokens, labels = read_prompt(prompt)
        given = Given(labels, (np.array([labels.index(token) for token in tokens], dtype=np.int64),))
    else:
        given = given_sequences(sequences, positive_int(3 if states is None else states, "states", at_least=2))  # type: ignore[arg-type]
    k = len(given.labels)
    if states not in (None, k):
        raise InputError(f"the sequences have {k} states, not {states}: leave states out")
    made, _ = assemble(
        estimators,
        n_states=k,
        concentration=design["concentration"],
        warn=warn_caller,
        checkpoints=checkpoints,
        device=device,
        tune=None if law is None else gamma_tuner(law, design["length"]),
        check_length=min(given.longest, _CHECKED),
    )
    return pd.DataFrame(prediction_columns(made, given))


def attention(
    estimator: str | Estimator,
    prompt: str | ArrayLike,
    *,
    order: str | None = None,
    states: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: str = "cpu",
) -> PromptAttention:
    """Return where an estimator looks while it reads a prompt.

    Parameters
    ----------
    estimator : str or Estimator
        A spec or your own object; one that shows its attention, such as `transformer`, the constructions, what
        :func:`icl_estimators.intervene` makes of them, or your own (:class:`icl_estimators.estimators.HasAttention`).
    prompt : str, or array-like of int of shape (T,)
        As for the command ``predict``: ``"^ABACA"``, or labels separated by commas or spaces. Integers are states
        from 0.
    order : str, optional
        The states of a prompt of labels in order, including any that it lacks: ``"A,B,C"``.
    states : int, optional
        K of a prompt of integers; by default the estimator's own, and 3 for a spec. A prompt of labels has its own.
    checkpoint : path, optional
        Weights for `transformer`.
    device : str
        Where a transformer runs.

    Returns
    -------
    PromptAttention
        `layers`, a list of arrays (H, P, P); `tokens`, what the P positions hold, the sentinel included; `frame()`, a
        long table; `figure()`, the heat maps.

    Raises
    ------
    InputError
        If the prompt or an option is not as above, the estimator is unknown or for another K, or shows no attention.
    ContractError
        If the estimator fails or breaks the contract.

    Examples
    --------
    >>> found = attention("construction", "^ABACA")
    >>> found.tokens, found.layers[1][0, -1].tolist()
    (('^', 'A', 'B', 'A', 'C', 'A'), [0.0, 0.0, 0.5, 0.0, 0.5, 0.0])
    >>> found.frame().query("layer == 2 and query == 5 and weight > 0").key_token.tolist()
    ['B', 'C']
    """
    tokens: list[str]
    labels: tuple[str, ...]
    if isinstance(prompt, str):
        if states is not None:
            raise InputError("states is for a prompt of integers: name the states of this one with order")
        tokens, labels = read_prompt(prompt, order)
        encoded = np.array([labels.index(token) for token in tokens], dtype=np.int64)
    else:
        if order is not None:
            raise InputError("order is for a prompt of labels: leave it out, or give the prompt as text")
        own = estimator.n_states if isinstance(estimator, Estimator) else 3
        k = positive_int(own if states is None else states, "states", at_least=2)
        given = np.asarray(prompt)
        if given.ndim != 1:
            raise InputError(f"the prompt must be text or have shape (T,), not {given.shape}")
        encoded = as_tokens(given[None], k)[0]
        tokens, labels = [str(token) for token in encoded.tolist()], tuple(map(str, range(k)))
    if isinstance(estimator, Estimator) and estimator.n_states != len(labels):
        remedy = "name all states with order" if isinstance(prompt, str) else "leave states out"
        raise InputError(
            f"{estimator.name} is for {estimator.n_states} states, but the prompt has {len(labels)}: {remedy}"
        )
    (made, *_), _ = assemble(
        [estimator],
        n_states=len(labels),
        concentration=1.0,
        warn=warn_caller,
        checkpoints=() if checkpoint is None else checkpoint,
        device=device,
        check_length=min(len(tokens), _CHECKED),
    )
    found = attention_on(made, tokens, encoded)
    if found is None:
        raise InputError(f"{made.name} shows no attention: name one that does, such as construction or transformer")
    return found


_CHECKED = 4096  # tokens on which estimators are checked: more would cost more than the predictions

_CLASSES = {"exact": Enumeration, "identification": Identification, "smoothing": Smoothing}


def read_results(folder: str | os.PathLike[str]) -> Comparison:
    """Read a study back from its folder: the same attributes, frames and methods as the result in memory.

    Plain ``pandas.read_csv`` makes text of a column that holds 1 … T and `mean`, so that
    ``risk[risk.context_length == 50]`` is silently empty. Here context lengths are integers beside "mean".

    Parameters
    ----------
    folder : path
        What ``evaluate``, ``smoothing``, ``identify`` or ``exact`` wrote, or :meth:`Comparison.save`.

    Returns
    -------
    Comparison
        An :class:`Identification`, :class:`Smoothing` or :class:`Enumeration` where the folder holds one.

    Raises
    ------
    InputError
        If there is no such folder, run.json is missing or not the record of a study, there is no table, or a table
        cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> design = {"chains": 20, "length": 6, "sequences_per_chain": 1, "decomposition_chains": 0}
    >>> result = compare(["uniform", "add-one"], **design)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = result.save(folder)
    ...     again = read_results(folder)
    >>> again.risk.equals(result.risk), int((again.risk.context_length == 5).sum()) > 0
    (True, True)
    """
    found = read_folder(Path(folder))
    return _CLASSES.get(kind_of(found.run), Comparison)(found.tables, found.run)


def _say_cost(study: Study) -> None:
    if (line := cost_line(study)) is not None:
        warn_caller(line)


def warn_caller(line: str) -> None:
    """Warn at the line of the user's program that called the package."""
    level, frame = 1, sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(line, stacklevel=level)
