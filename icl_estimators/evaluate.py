"""Compare estimators on fresh chains or observed sequences: ``python -m icl_estimators.evaluate``."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.data_options import DATA_FLAGS, data_files, data_parent, has_data, read_data, refuse_data_flags
from icl_estimators.locking import sole_writer
from icl_estimators.options import (
    STOPPED,
    Interrupted,
    Parser,
    Stopped,
    add_report_flags,
    command,
    concentration,
    count,
    decomposition_parent,
    estimator_parent,
    exact_parent,
    flags_of,
    kept,
    level,
    minutes,
    natural,
    refuse_flags,
    sampling_parent,
    warn,
)
from icl_estimators.progress import progress_reports

if TYPE_CHECKING:
    from icl_estimators.engine.block_store import StudyBlocks
    from icl_estimators.engine.result import StudyResult
    from icl_estimators.experiments.study import Study
    from icl_estimators.sources import ObservedSequences

__all__ = ["main"]

# Flags that apply to observed data. Any other flag is about chains, blocks or processes.
_OF_OBSERVED = DATA_FLAGS | {
    *("estimators", "checkpoints", "reference", "level", "length", "states", "concentration", "device"),
    *("pool", "folds", "matrix", "out", "force", "report", "no_report", "quiet"),
}


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.evaluate",
        description="Compare next-token estimators on freshly sampled Markov chains or, with --dataset or --sequences, "
        "on observed\nsequences: KL, regret, total variation, squared error and log loss, with intervals and paired "
        "differences.",
        parents=[estimator_parent(), sampling_parent(), decomposition_parent(), exact_parent(), data_parent()],
    )
    parser.add_argument(
        "--reference",
        default="add-one",
        metavar="SPEC",
        help="the estimator that the others are compared with (default add-one)",
    )
    parser.add_argument("--level", type=level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    parser.add_argument(
        "--target-se",
        type=concentration,  # a finite number above 0
        metavar="SE",
        help="say how many chains give the mean KL and the mean regret this standard error, in nats",
    )
    parser.add_argument(
        "--keep",
        type=kept,
        metavar="chains",
        help="also write chains.csv, one value for each estimator, metric and chain (7 MB for the default study)",
    )
    workers = parser.add_mutually_exclusive_group()
    workers.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of processes; it does not change the tables (default: all cores)",
    )
    workers.add_argument(
        "--dask", metavar="ADDRESS", help="use the workers of a dask scheduler, as in tcp://10.0.0.1:8786"
    )
    pooling = parser.add_argument_group("statistics of your own sequences")
    pooling.add_argument(
        "--pool",
        action="store_true",
        help="also score counting rules with counts that carry over: from earlier sequences, and from other folds",
    )
    pooling.add_argument(
        "--folds", type=count, metavar="N", help="folds of sequences for --pool (default 10, or one for each sequence)"
    )
    pooling.add_argument(
        "--matrix", metavar="FILE", help="test a stated transition matrix: rows of numbers, with or without labels"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("icl-results"), metavar="DIR", help="output folder (default icl-results)"
    )
    parts = parser.add_argument_group("a study in parts (docs/long-studies.md)")
    parts.add_argument(
        "--chains-from",
        type=natural,
        metavar="A",
        help="compute only a piece: from chain A of --chains on, and the same share of the other designs; no tables "
        "(merge puts pieces together)",
    )
    parts.add_argument(
        "--chains-to", type=count, metavar="B", help="the piece ends before chain B (default: the last chain)"
    )
    parts.add_argument(
        "--max-time",
        type=minutes,
        metavar="MINUTES",
        help=f"start no block after so many minutes, keep what is done, and end with status {STOPPED}; continue with "
        "--resume",
    )
    restart = parser.add_mutually_exclusive_group()
    restart.add_argument(
        "--resume", action="store_true", help="continue a run that was stopped, from its last finished block"
    )
    restart.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    add_report_flags(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run a comparison and write its folder; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with ExitStack() as held:
        return _main(arguments, held)


def _main(arguments: list[str], held: ExitStack) -> int:
    options = _parser().parse_args(arguments)
    _refuse_what_does_not_apply(options)
    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    began = time.perf_counter()
    if options.chains_from is not None or options.chains_to is not None:
        return _piece(options, arguments, held, began)
    data = read_data(options)
    result, inputs = _simulated(options, held, began) if data is None else _observed(options, data, held)
    if result is None:
        if not options.quiet:
            print(f"{options.out} already holds this study, finished: there is nothing left to do")
        return 0
    from icl_estimators.api import Comparison
    from icl_estimators.reporting.provenance import provenance

    result.run.update(provenance("icl_estimators.evaluate", arguments, inputs))
    result.run["device"] = options.device
    result.run["jobs"] = options.jobs if data is None else 1
    result.run["threads"] = 1  # in each of them
    result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
    paths = result.save(options.out, force=options.force)
    shutil.rmtree(options.out / "blocks", ignore_errors=True)  # the tables hold what was made of them
    if not options.quiet:
        print(Comparison.of(result).summary(), flush=True)
    from icl_estimators.reporting.build import listed, make_report

    paths += make_report(
        options.out, options.report, wanted=not options.no_report, warn=None if options.quiet else warn
    )
    if not options.quiet:
        print("\nWrote")
        for line in listed(paths):
            print(f"  {line}")
    return 0


def _refuse_what_does_not_apply(options: argparse.Namespace) -> None:
    if has_data(options):
        refuse_flags(options, options.given.keys() - _OF_OBSERVED, "observed sequences")
    else:
        refuse_flags(options, ["pool", "folds", "matrix"], "simulated chains")
    if options.chains_from is not None or options.chains_to is not None:
        refuse_flags(options, ["report"], "a piece of a study, which has no tables")
    refuse_data_flags(options)
    if options.decomposition_chains == 0:
        refuse_flags(options, ["decomposition_sequences"], "--decomposition-chains 0")


def _study(options: argparse.Namespace, held: ExitStack) -> tuple[Study, dict[str, Any]]:
    """Return the study and its record; hold its folder."""
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.study import Study, StudyOptions

    study = Study.build(options.estimators, warn=warn, dashes="--", **flags_of(options, StudyOptions))
    record = {"options": study.record(), "identity": study_identity(study.estimators)}
    held.enter_context(sole_writer(options.out))
    return study, record


def _say_cost(study: Study, options: argparse.Namespace) -> None:
    """Say what an estimator of one's own will be asked for, once nothing stands in the way."""
    from icl_estimators.experiments.cost import cost_line

    if (line := cost_line(study)) is not None and not options.quiet:
        warn(line)


@contextmanager
def _work(options: argparse.Namespace, kept: StudyBlocks, began: float) -> Iterator[dict[str, Any]]:
    """Give the options of a run that can be stopped: one line then says what is kept and how to continue."""
    from icl_estimators.engine.time_limit import OutOfTime, TimeLimit

    how = f"finished blocks are kept in {kept.folder}: continue with --resume"
    limit = None if options.max_time is None else TimeLimit(60 * options.max_time, began)
    with progress_reports(quiet=options.quiet) as (progress, notice):
        try:
            yield {"jobs": options.jobs, "dask": options.dask, "progress": progress, "notice": notice, "limit": limit}
        except KeyboardInterrupt as stop:
            raise Interrupted(f"stopped; {how}", stop) from None
        except OutOfTime as over:
            raise Stopped(f"stopped by --max-time {options.max_time:g}; {over}; {how}") from None


def _simulated(options: argparse.Namespace, held: ExitStack, began: float) -> tuple[StudyResult | None, list[Path]]:
    """Run the study; None if it was to be resumed but is already finished."""
    from icl_estimators.engine.block_store import StudyBlocks
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.compare import run_study
    from icl_estimators.files import require_writable

    study, record = _study(options, held)
    check_folder(options.out, record, force=options.force)
    if options.resume and (options.out / "run.json").exists():
        return None, []
    if not options.no_report:
        require_writable(options.out / "figures")
    decisive = {**record["options"], **record["identity"]}
    kept = StudyBlocks(options.out, decisive, resume=options.resume, force=options.force)
    _say_cost(study, options)
    with _work(options, kept, began) as work:
        result = run_study(study, kept=kept, **work)
    result.run["dask"] = options.dask
    return result, list(weight_files(study.estimators).values())


def _piece(options: argparse.Namespace, arguments: list[str], held: ExitStack, began: float) -> int:
    """Compute a piece of the study and write its record; return the exit status."""
    from icl_estimators.engine.block_store import StudyBlocks
    from icl_estimators.engine.folder import write_json
    from icl_estimators.engine.pieces import Piece, check_piece_folder
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.pieces import run_piece
    from icl_estimators.experiments.study import StudyOptions
    from icl_estimators.reading import PIECE_FILE
    from icl_estimators.reporting.provenance import provenance

    piece = Piece(options.chains_from or 0, options.chains_to or options.chains, options.chains)
    study, record = _study(options, held)
    decisive = {**record["options"], **record["identity"]}
    finished = check_piece_folder(options.out, piece, decisive, force=options.force)
    if not (finished and options.resume):
        kept = StudyBlocks(options.out, decisive, resume=options.resume, force=options.force, piece=piece.record())
        _say_cost(study, options)
        with _work(options, kept, began) as work:
            run = {**run_piece(study, piece, kept, **work), **record}
        run["flags"] = {"estimators": options.estimators, **flags_of(options, StudyOptions)}  # merge builds it of them
        run.update(provenance("icl_estimators.evaluate", arguments, weight_files(study.estimators).values()))
        run["dask"] = options.dask
        run["wall_time_s"] = round(time.perf_counter() - began, 3)
        write_json(options.out / PIECE_FILE, run)
        if not any(design["blocks"] for design in run["designs"].values()):
            warn(f"no block of this study begins among {piece}: there was nothing to compute")
    if not options.quiet:
        where = f"{'already ' if finished else ''}are in {options.out}"
        how = f"python -m icl_estimators.merge {options.out} … --out WHOLE"
        print(f"{piece} of {piece.total:,} {where}; put all pieces together: {how}")
    return 0


def _observed(options: argparse.Namespace, data: ObservedSequences, held: ExitStack) -> tuple[StudyResult, list[Path]]:
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.observed import unchecked_line
    from icl_estimators.experiments.observed_study import ObservedOptions, ObservedStudy
    from icl_estimators.sources.observed.matrix import read_matrix

    flags = flags_of(options, ObservedOptions)
    if options.matrix is not None:
        flags["matrix"] = read_matrix(options.matrix, data.labels)
    study = ObservedStudy.build(data, options.estimators, warn=warn, dashes="--", **flags)
    record = {"options": study.record(), "identity": study_identity(study.estimators)}
    held.enter_context(sole_writer(options.out))
    check_folder(options.out, record, force=options.force)
    for line in (*unchecked_line(study.estimators, data, study.length), *study.left_out):
        warn(line)
    if not options.quiet:
        warn(data.described())
    with progress_reports(quiet=options.quiet, unit="row") as (progress, _):
        result = study.run(progress)
    return result, [*data_files(options), *weight_files(study.estimators).values()]


if __name__ == "__main__":
    sys.exit(main())
