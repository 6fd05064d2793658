"""Compare estimators on fresh chains or observed sequences: ``python -m icl_estimators.evaluate``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.options import (
    Parser,
    command,
    count,
    estimator_parent,
    level,
    make_estimators,
    progress_reports,
    report_formats,
    sampling_parent,
)
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    from icl_estimators.experiments.compare import Comparison

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.evaluate",
        description="Compare next-token estimators on freshly sampled Markov chains or, with --dataset or --sequences, "
        "on observed\nsequences: KL, regret, total variation, squared error and log loss, with intervals and paired "
        "differences.",
        parents=[estimator_parent(), sampling_parent()],
    )
    parser.add_argument(
        "--reference", default="add-one", metavar="SPEC", help="whom the others are compared with (default add-one)"
    )
    parser.add_argument("--level", type=level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    parser.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes; the tables are the same for any number (default: all cores)",
    )
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--sequences", metavar="FILE", help="observed sequences instead of chains: a text file, one a line"
    )
    data.add_argument("--dataset", metavar="NAME", help="an observed series that ships with a library: elnino")
    parser.add_argument(
        "--out", type=Path, default=Path("icl-results"), metavar="DIR", help="output folder (default icl-results)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
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


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run a comparison and write its folder; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(arguments)
    observed = options.sequences is not None or options.dataset is not None
    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    began = time.perf_counter()
    result, inputs = _observed(options) if observed else _simulated(options)
    from icl_estimators.reporting.provenance import provenance

    result.run.update(provenance("icl_estimators.evaluate", arguments, inputs))
    result.run["device"] = options.device
    result.run["jobs"] = options.jobs
    result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
    paths = result.save(options.out, force=options.force)
    if not options.quiet:
        print(result.summary(), flush=True)
    paths += _report(options)
    if not options.quiet:
        print("\nWrote")
        for path in paths:
            print(f"  {path}")
    return 0


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


def _simulated(options: argparse.Namespace) -> tuple[Comparison, list[Path]]:
    from icl_estimators.chains import ChainLaw
    from icl_estimators.experiments.compare import design_options, run_study, study_estimators, training_runs
    from icl_estimators.experiments.folder import check_folder
    from icl_estimators.experiments.study import Study

    law = ChainLaw(
        3 if options.states is None else options.states,
        1.0 if options.concentration is None else options.concentration,
        options.start,
    )
    made, reference = study_estimators(
        make_estimators(options, n_states=law.n_states, concentration=law.concentration),
        law,
        reference=options.reference,
        checkpoints=options.checkpoint or (),
        device=options.device,
        warn=_warn,
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
        checkpoints=training_runs(made),
    )
    check_folder(options.out, {"options": design_options(study)}, force=options.force)
    with progress_reports(quiet=options.quiet) as progress:
        return run_study(study, jobs=options.jobs, progress=progress), _weights(made)


def _observed(options: argparse.Namespace) -> tuple[Comparison, list[Path]]:
    from icl_estimators.chains import read_sequences
    from icl_estimators.chains.observed import dataset
    from icl_estimators.experiments.compare import Comparison
    from icl_estimators.experiments.folder import check_folder
    from icl_estimators.experiments.observed import observed_risk

    data = read_sequences(options.sequences) if options.sequences else dataset(options.dataset)
    if options.states not in (None, data.n_states):
        raise InputError(f"{data.name} has {data.n_states} states, not {options.states}: leave --states out")
    if options.concentration is None and options.estimators and "bayes" in options.estimators.split(","):
        raise InputError("bayes needs --concentration on observed sequences: their prior is not known")
    estimators = make_estimators(options, n_states=data.n_states, concentration=options.concentration or 1.0)
    window = options.length
    design: dict[str, Any] = {
        "data": data.name,
        "labels": list(data.labels),
        "n_sequences": len(data.sequences),
        "n_predictions": data.n_predictions,
        "estimators": [estimator.name for estimator in estimators],
        "length": window,
        "states": data.n_states,
        "level": options.level,
    }
    check_folder(options.out, {"options": design}, force=options.force)
    tables = {"risk": observed_risk(estimators, data, window=window, level=options.level)}
    inputs = [Path(options.sequences)] if options.sequences else []
    return Comparison(tables, {"options": design}), inputs + _weights(estimators)


def _weights(estimators: Sequence[Any]) -> list[Path]:
    """Return the files that trained estimators were read from."""
    return [Path(rule.checkpoint) for rule in estimators if getattr(rule, "checkpoint", None)]


def _warn(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
