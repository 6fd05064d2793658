"""Compare estimators on fresh chains or observed sequences: ``python -m icl_estimators.evaluate``."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.locking import sole_writer
from icl_estimators.options import (
    Interrupted,
    Parser,
    command,
    count,
    decomposition_parent,
    estimator_parent,
    level,
    make_estimators,
    progress_reports,
    refuse_flags,
    report_formats,
    sampling_parent,
)
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    from icl_estimators.experiments.compare import Comparison
    from icl_estimators.sources import ObservedSequences

__all__ = ["main"]

# What observed data have a use for; a flag that is not here says something about chains, blocks or processes.
_OF_OBSERVED = frozenset(
    {"estimators", "checkpoint", "reference", "level", "length", "states", "concentration", "device", "sequences"}
    | {"delimiter", "characters", "dataset", "out", "force", "report", "no_report", "quiet"}
)


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.evaluate",
        description="Compare next-token estimators on freshly sampled Markov chains or, with --dataset or --sequences, "
        "on observed\nsequences: KL, regret, total variation, squared error and log loss, with intervals and paired "
        "differences.",
        parents=[estimator_parent(), sampling_parent(), decomposition_parent()],
    )
    parser.add_argument(
        "--reference", default="add-one", metavar="SPEC", help="whom the others are compared with (default add-one)"
    )
    parser.add_argument("--level", type=level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes; the tables are the same for any number (default: all cores)",
    )
    workers.add_argument(
        "--dask", metavar="ADDRESS", help="use the workers of a dask scheduler, as in tcp://10.0.0.1:8786"
    )
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--sequences", metavar="FILE", help="observed sequences instead of chains: a text file, one a line"
    )
    data.add_argument("--dataset", metavar="NAME", help="an observed series that ships with a library: elnino")
    labels = parser.add_mutually_exclusive_group()
    labels.add_argument(
        "--delimiter",
        type=_delimiter,
        metavar="CHAR",
        help="what separates the labels of --sequences; tab and space may be written so (default: commas, semicolons, "
        "tabs or white space, whichever the file has)",
    )
    labels.add_argument(
        "--characters", action="store_true", help="each character of --sequences is a state, as in ABACABA"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("icl-results"), metavar="DIR", help="output folder (default icl-results)"
    )
    anew = parser.add_mutually_exclusive_group()
    anew.add_argument("--resume", action="store_true", help="go on with a run that was stopped, from its last block")
    anew.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    report = parser.add_mutually_exclusive_group()
    report.add_argument(
        "--report",
        type=report_formats,
        metavar="html,pdf",
        help="what to make of the tables at the end (default: both, where the extra `report` is installed)",
    )
    report.add_argument("--no-report", action="store_true", help="the tables alone")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


def _delimiter(text: str) -> str:
    return {"tab": "\t", r"\t": "\t", "space": " "}.get(text, text)


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run a comparison and write its folder; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with ExitStack() as held:
        return _main(arguments, held)


def _main(arguments: list[str], held: ExitStack) -> int:
    options = _parser().parse_args(arguments)
    observed = options.sequences is not None or options.dataset is not None
    _refuse_what_does_not_apply(options)
    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    began = time.perf_counter()
    result, inputs = _observed(options, held) if observed else _simulated(options, held)
    if result is None:
        if not options.quiet:
            print(f"{options.out} holds this very study, finished: nothing is left to do")
        return 0
    from icl_estimators.reporting.provenance import provenance

    result.run.update(provenance("icl_estimators.evaluate", arguments, inputs))
    result.run["device"] = options.device
    result.run["jobs"] = 1 if observed else options.jobs
    result.run["threads"] = 1  # in each of them
    result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
    paths = result.save(options.out, force=options.force)
    shutil.rmtree(options.out / "blocks", ignore_errors=True)  # the tables hold what was made of them
    if not options.quiet:
        print(result.summary(), flush=True)
    paths += _report(options)
    if not options.quiet:
        from icl_estimators.reporting.build import listed

        print("\nWrote")
        for line in listed(paths):
            print(f"  {line}")
    return 0


def _refuse_what_does_not_apply(options: argparse.Namespace) -> None:
    if options.sequences is not None or options.dataset is not None:
        refuse_flags(options, options.given.keys() - _OF_OBSERVED, "observed sequences")
    if options.sequences is None:
        refuse_flags(options, ["delimiter", "characters"], "anything but --sequences")
    if options.decomposition_chains == 0:
        refuse_flags(options, ["decomposition_sequences"], "--decomposition-chains 0")


def _report(options: argparse.Namespace) -> list[Path]:
    """Make the report that was asked for, or as much of it as can be made here."""
    from icl_estimators.reporting.build import build_report, remove_report
    from icl_estimators.reporting.convert import FORMATS, REMEDY, missing_packages

    if options.no_report:
        remove_report(options.out)
        return []
    formats = options.report or tuple(name for name in FORMATS if not missing_packages([name]))
    paths = build_report(options.out, formats)
    lacking = [] if options.report else missing_packages(FORMATS)
    if lacking and not options.quiet:
        left_out = " and ".join(f"report.{name}" for name in FORMATS if name not in formats)
        _warn(f"{left_out} left out, for want of {' and '.join(lacking)}: {REMEDY}")
    return paths


def _simulated(options: argparse.Namespace, held: ExitStack) -> tuple[Comparison | None, list[Path]]:
    """Run the study; None if it had been finished before and was to be resumed."""
    from icl_estimators.engine.block_store import StudyBlocks
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.compare import (
        design_options,
        expect_study,
        run_study,
        study_estimators,
        weight_files,
    )
    from icl_estimators.experiments.study import Study
    from icl_estimators.experiments.tuning import gamma_tuner
    from icl_estimators.files import require_writable
    from icl_estimators.sources import ChainLaw

    law = ChainLaw(
        3 if options.states is None else options.states,
        1.0 if options.concentration is None else options.concentration,
        options.start,
    )
    tune = gamma_tuner(law, options.length)
    made, reference = study_estimators(
        make_estimators(options, n_states=law.n_states, concentration=law.concentration, tune=tune),
        law,
        reference=options.reference,
        checkpoints=options.checkpoint or (),
        device=options.device,
        warn=_warn,
        length=options.length,
        tune=tune,
    )
    study = Study(
        estimators=made,
        reference=reference,
        law=law,
        length=options.length,
        chains=options.chains,
        sequences_per_chain=options.sequences_per_chain,
        decomposition_chains=options.decomposition_chains,
        decomposition_sequences=options.decomposition_sequences,
        seed=options.seed,
        level=options.level,
    )
    expect_study(study)
    design, identity = design_options(study), study_identity(made)
    held.enter_context(sole_writer(options.out))
    check_folder(options.out, {"options": design, "identity": identity}, force=options.force)
    if options.resume and (options.out / "run.json").exists():
        return None, []
    if not options.no_report:
        require_writable(options.out / "figures")
    kept = StudyBlocks(options.out, {**design, **identity}, resume=options.resume, force=options.force)
    with progress_reports(quiet=options.quiet) as (progress, notice):
        try:
            result = run_study(study, jobs=options.jobs, dask=options.dask, progress=progress, notice=notice, kept=kept)
        except KeyboardInterrupt as stop:
            raise Interrupted(f"stopped; finished blocks are kept in {kept.folder}: --resume goes on", stop) from None
    result.run["dask"] = options.dask
    return result, list(weight_files(made).values())


def _observed(options: argparse.Namespace, held: ExitStack) -> tuple[Comparison | None, list[Path]]:
    from icl_estimators.engine.executors import one_thread
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators import split_specs, stated_tolerances, tolerance_lines
    from icl_estimators.estimators.accepted_options import takes
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.estimators.registry import parse_spec
    from icl_estimators.experiments.compare import Comparison, gamma_record, weight_files
    from icl_estimators.experiments.observed import unchecked_line
    from icl_estimators.experiments.observed_tables import observed_tables, with_reference
    from icl_estimators.files import sha256
    from icl_estimators.sources import read_sequences
    from icl_estimators.sources.observed.sequences import dataset

    if options.sequences is not None:
        data = read_sequences(options.sequences, delimiter=options.delimiter, characters=options.characters)
    else:
        data = dataset(options.dataset)
    if options.states not in (None, data.n_states):
        raise InputError(f"{data.name} has {data.n_states} states, not {options.states}: leave --states out")
    named = [] if options.estimators is None else split_specs(options.estimators)
    if options.concentration is None and any(parse_spec(spec).head == "bayes" for spec in (*named, options.reference)):
        raise InputError("bayes needs --concentration on observed sequences: their prior is not known")
    if not any(takes(spec, "concentration") for spec in (*named, options.reference)):
        refuse_flags(options, ["concentration"], "observed sequences without bayes among the estimators")
    estimators, reference = with_reference(
        make_estimators(options, n_states=data.n_states, concentration=options.concentration or 1.0),
        options.reference,
        n_states=data.n_states,
        concentration=options.concentration or 1.0,
        device=options.device,
        checkpoints=options.checkpoint or (),
        warn=_warn,
    )
    window = options.length
    weights = weight_files(estimators)
    tolerances = stated_tolerances(estimators)
    design: dict[str, Any] = {
        "data": data.name,
        "data_sha256": _digest(data),
        "labels": list(data.labels),
        "n_sequences": len(data.sequences),
        "n_predictions": data.n_predictions,
        "longest_history": max(len(sequence) - 1 for sequence in data.sequences),
        "estimators": [estimator.name for estimator in estimators],
        "reference": reference,
        "weights": {name: sha256(path) for name, path in weights.items()},
        "concentration": options.concentration,
        "length": window,
        "states": data.n_states,
        "level": options.level,
        **({"tolerances": tolerances} if tolerances else {}),
    }
    identity = study_identity(estimators)
    held.enter_context(sole_writer(options.out))
    check_folder(options.out, {"options": design, "identity": identity}, force=options.force)
    for line in (*tolerance_lines(tolerances), *unchecked_line(estimators, data, window)):
        _warn(line)
    if not options.quiet:
        _warn(data.described())
    with one_thread():
        tables = observed_tables(estimators, data, reference=reference, window=window, level=options.level)
    inputs = [Path(options.sequences)] if options.sequences and Path(options.sequences).is_file() else []  # or a pipe
    run = {"options": design, "identity": identity, "data": data.record, **gamma_record(estimators)}
    return Comparison(tables, run), [*inputs, *weights.values()]


def _digest(data: ObservedSequences) -> str:
    """Return a digest of the sequences as they were read, whatever file or pipe they came from."""
    digest = hashlib.sha256(repr(data.labels).encode())
    for sequence in data.sequences:
        digest.update(repr(sequence.tolist()).encode())
    return digest.hexdigest()


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
