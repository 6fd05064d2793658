"""Exact risk of estimators at short context lengths: ``python -m icl_estimators.exact``."""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.options import (
    Parser,
    add_report_flags,
    command,
    concentration,
    count,
    estimator_parent,
    make_estimators,
    refuse_flags,
    warn,
)

if TYPE_CHECKING:
    from icl_estimators.engine.result import StudyResult
    from icl_estimators.experiments.exact_study import ExactStudy

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.exact",
        description="Expected loss of each estimator at context lengths 1 to N, by enumeration of every prefix "
        "with its exact\nprobability: no Monte Carlo error. Chains: Dirichlet rows, uniform first token.",
        parents=[estimator_parent()],
    )
    parser.add_argument(
        "--context-length", type=count, required=True, metavar="N", help="longest context (for K = 3 at most 12)"
    )
    parser.add_argument("--states", type=count, default=3, metavar="K", help="number of states (default 3)")
    parser.add_argument(
        "--concentration",
        type=concentration,
        default=1.0,
        metavar="A",
        help="α of the Dirichlet prior (default 1)",
    )
    parser.add_argument(
        "--budget",
        action="store_true",
        help="instead, say where each estimator loses at N: its regret divided into order, other rows, labels,\n"
        "the current token, and the shape and amount of smoothing",
    )
    parser.add_argument(
        "--csv",
        action="store_true",
        help="print estimator,context_length,metric,estimate at full precision; with --budget, part instead of metric",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="also write exact.csv, with --budget budget.csv, run.json and a report to this folder",
    )
    parser.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    add_report_flags(parser)
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Print the exact risk, and write the folder that was asked for; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(arguments)
    with ExitStack() as held:
        return _main(options, arguments, held)


def _main(options: argparse.Namespace, arguments: Sequence[str], held: ExitStack) -> int:
    if options.out is None:
        refuse_flags(options, ["report", "no_report", "force"], "a run without --out")
    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    began = time.perf_counter()
    study = _study(options)
    if options.out is not None:
        from icl_estimators.engine.folder import check_folder
        from icl_estimators.estimators.identity import study_identity
        from icl_estimators.locking import sole_writer

        held.enter_context(sole_writer(options.out))
        record = {"options": study.record(), "identity": study_identity(study.estimators)}
        check_folder(options.out, record, force=options.force)
    result = study.run(only_budget=options.budget and options.out is None)
    paths = [] if options.out is None else _save(result, study, options, arguments, time.perf_counter() - began)
    _print(result, options)
    if paths and not options.csv:
        from icl_estimators.reporting.build import listed

        print("\nWrote")
        for line in listed(paths):
            print(f"  {line}")
    return 0


def _study(options: argparse.Namespace) -> ExactStudy:
    from icl_estimators.experiments.exact import check_exact_budget
    from icl_estimators.experiments.exact_study import ExactStudy
    from icl_estimators.experiments.tuning import gamma_tuner
    from icl_estimators.sources import ChainLaw

    law = ChainLaw(options.states, options.concentration)
    check_exact_budget(law.n_states, options.context_length)
    estimators = make_estimators(
        options,
        n_states=law.n_states,
        concentration=law.concentration,
        tune=gamma_tuner(law, options.context_length),
        check_length=options.context_length,
    )
    return ExactStudy(tuple(estimators), options.context_length, law, options.budget)


def _save(
    result: StudyResult, study: ExactStudy, options: argparse.Namespace, arguments: Sequence[str], seconds: float
) -> list[Path]:
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.reporting.build import make_report
    from icl_estimators.reporting.provenance import provenance

    result.run.update(provenance("icl_estimators.exact", arguments, weight_files(study.estimators).values()))
    result.run["wall_time_s"] = round(seconds, 3)
    paths = result.save(options.out, force=options.force)
    return paths + make_report(options.out, options.report, wanted=not options.no_report, warn=warn)


def _print(result: StudyResult, options: argparse.Namespace) -> None:
    rows = result.records["budget" if options.budget else "exact"]
    if options.csv:
        kind = "part" if options.budget else "metric"
        undefined = "" if options.budget else "nan"
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["estimator", "context_length", kind, "estimate"])
        for row in rows:
            if not options.budget or row["context_length"] == options.context_length:
                value = float(row["estimate"])  # type: ignore[arg-type]
                spelled = undefined if math.isnan(value) else repr(value + 0.0)
                writer.writerow([row["estimator"], row["context_length"], row[kind], spelled])
        return
    from icl_estimators.reporting.terminal.exact import budget_text, exact_text

    print((budget_text if options.budget else exact_text)(rows, result.run), flush=True)


if __name__ == "__main__":
    sys.exit(main())
