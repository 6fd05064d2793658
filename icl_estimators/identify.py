"""Which estimator is it? ``python -m icl_estimators.identify``."""

from __future__ import annotations

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.locking import sole_writer
from icl_estimators.options import (
    Parser,
    add_report_flags,
    command,
    count,
    exact_parent,
    flags_of,
    level,
    refuse_flags,
    sampling_parent,
    warn,
)
from icl_estimators.progress import progress_reports

if TYPE_CHECKING:
    from icl_estimators.api import Identification

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.identify",
        description="Say which estimator a model is: the nearest rule and how much of the probability lies elsewhere, "
        "the pseudo-count\nby visits, the distance from Bayes and where it is lost, and what the predictions depend "
        "on besides the counts.",
        parents=[sampling_parent(), exact_parent()],
    )
    parser.add_argument(
        "spec",
        nargs="?",
        default="transformer",
        metavar="SPEC",
        help="the estimator, such as add-constant:0.5 or my.module:model (default: transformer, the shipped one)",
    )
    parser.add_argument(
        "--checkpoint",
        dest="checkpoints",
        action="append",
        metavar="[NAME=]FILE",
        help="a trained transformer (.safetensors); may be repeated",
    )
    parser.add_argument("--level", type=level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    parser.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of processes; it does not change the numbers (default: all cores)",
    )
    parser.add_argument(
        "--csv",
        action="store_true",
        help="print estimator,quantity,other,context_length,visits,estimate,ci_low,ci_high,note at full precision",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write every table and a report to this folder")
    parser.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    add_report_flags(parser)
    parser.add_argument("--quiet", action="store_true", help="show no progress")
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Print what an estimator is like, and write the folder that was asked for; return the exit status."""
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
    result, inputs = _run(options, held)
    paths: list[Path] = []
    if options.out is not None:
        from icl_estimators.reporting.provenance import provenance

        result.run.update(provenance("icl_estimators.identify", arguments, inputs))
        result.run["device"] = options.device
        result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
        paths = result.save(options.out, force=options.force)
    if options.csv:
        _print_csv(result)
    else:
        print(result.summary(), flush=True)
    if options.out is not None:
        from icl_estimators.reporting.build import listed, make_report

        paths += make_report(options.out, options.report, wanted=not options.no_report, warn=warn)
        if not options.csv and not options.quiet:
            print("\nWrote")
            for line in listed(paths):
                print(f"  {line}")
    return 0


def _run(options: argparse.Namespace, held: ExitStack) -> tuple[Identification, list[Path]]:
    from icl_estimators.api import Identification
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.compare import run_study
    from icl_estimators.experiments.cost import cost_line
    from icl_estimators.experiments.identification import IdentificationOptions, identification_study

    study = identification_study(options.spec, warn=warn, dashes="--", **flags_of(options, IdentificationOptions))
    if options.out is not None:
        record = {"options": study.record(), "identity": study_identity(study.estimators)}
        held.enter_context(sole_writer(options.out))
        check_folder(options.out, record, force=options.force)
    if (line := cost_line(study)) is not None and not options.quiet:
        warn(line)
    with progress_reports(quiet=options.quiet) as (progress, notice):
        result = run_study(study, jobs=options.jobs, progress=progress, notice=notice)
    return Identification.of(result), list(weight_files(study.estimators).values())


def _print_csv(result: Identification) -> None:
    from icl_estimators.reporting.terminal.identity import COLUMNS

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in result.rows():
        writer.writerow([_spelled(row[name]) for name in COLUMNS])


def _spelled(cell: Any) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return repr(float(cell)) if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    sys.exit(main())
