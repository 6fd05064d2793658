"""Put the pieces of a study together: ``python -m icl_estimators.merge A B … --out WHOLE``."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from icl_estimators.locking import sole_writer
from icl_estimators.options import Parser, add_report_flags, command, warn
from icl_estimators.progress import progress_reports
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    from icl_estimators.engine.pieces import FinishedPiece
    from icl_estimators.experiments.study import Study

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.merge",
        description="Put pieces of a study together, as evaluate --chains-from A --chains-to B makes them. The tables "
        "have the same\nbytes as those of one run of all chains. No block is computed again.",
        epilog="example: python -m icl_estimators.merge piece-1 piece-2 --out icl-results",
    )
    parser.add_argument(
        "pieces", type=Path, nargs="+", metavar="DIR", help="the output folders of all pieces, in any order"
    )
    parser.add_argument(
        "--checkpoint",
        dest="checkpoints",
        action="append",
        metavar="[NAME=]FILE",
        help="where a trained transformer of the pieces is on this machine; may be repeated (default: where it was "
        "for the first piece)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder of the whole study")
    parser.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    add_report_flags(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Make the tables of the whole study and write its folder; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with ExitStack() as held:
        return _main(arguments, held)


def _main(arguments: list[str], held: ExitStack) -> int:
    options = _parser().parse_args(arguments)
    from icl_estimators.engine.pieces import check_one_study, check_whole, read_piece

    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    if any(folder.resolve() == options.out.resolve() for folder in options.pieces):
        raise InputError(f"{options.out} is one of the pieces: name another folder with --out")
    began = time.perf_counter()
    pieces = [read_piece(folder) for folder in options.pieces]
    check_one_study(pieces)
    pieces = check_whole(pieces)
    study = _study(options, pieces)

    from icl_estimators.api import Comparison
    from icl_estimators.engine.gathered import GatheredBlocks
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.compare import run_study
    from icl_estimators.reporting.build import listed, make_report
    from icl_estimators.reporting.provenance import provenance

    _hold(options, study, pieces, held)
    with progress_reports(quiet=options.quiet) as (progress, notice):
        result = run_study(study, progress=progress, notice=notice, kept=GatheredBlocks(pieces))
    result.run.update(provenance("icl_estimators.merge", arguments, weight_files(study.estimators).values()))
    result.run["device"] = pieces[0].run["flags"].get("device")
    result.run["pieces"] = [_of_piece(found) for found in pieces]
    others = {name: differs for found in pieces for name, differs in found.run.get("other_cpus", {}).items()}
    if others:
        result.run["other_cpus"] = others
    result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
    paths = result.save(options.out, force=options.force)
    shutil.rmtree(options.out / "blocks", ignore_errors=True)  # of an earlier run that --force overwrites
    if not options.quiet:
        print(Comparison.of(result).summary(), flush=True)
    say = None if options.quiet else warn
    paths += make_report(options.out, options.report, wanted=not options.no_report, warn=say)
    if not options.quiet:
        print("\nWrote")
        for line in listed(paths):
            print(f"  {line}")
    return 0


def _study(options: argparse.Namespace, pieces: Sequence[FinishedPiece]) -> Study:
    """Build the study of the pieces again, and check that it is theirs on this machine."""
    from icl_estimators.engine.same_study import differences
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.study import Study

    flags: dict[str, Any] = dict(pieces[0].run["flags"])
    if options.checkpoints:
        flags["checkpoints"] = options.checkpoints
    study = Study.build(flags.pop("estimators"), warn=warn, dashes="--", **flags)
    here = json.loads(json.dumps({**study.record(), **study_identity(study.estimators)}))
    differs = differences(pieces[0].decisive, here, "{} is {} in the pieces and {} here")
    if differs:
        more = f"; and {len(differs) - 3} more" if len(differs) > 3 else ""
        raise InputError(
            f"the study of the pieces is another one here: {'; '.join(differs[:3])}{more}; merge them where they were "
            "computed, or restore what differs"
        )
    return study


def _hold(options: argparse.Namespace, study: Study, pieces: Sequence[FinishedPiece], held: ExitStack) -> None:
    """Hold the output folder, and check that the study may be written there."""
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.files import require_writable

    held.enter_context(sole_writer(options.out))
    record = {"options": study.record(), "identity": pieces[0].run["identity"]}
    check_folder(options.out, record, force=options.force)
    blocks = options.out / "blocks"
    if not options.force and next(blocks.glob("*/*.npz"), None) is not None:
        raise InputError(
            f"{blocks} holds finished blocks of a run that was stopped: name another folder with --out, or overwrite "
            "it with --force"
        )
    if not options.no_report:
        require_writable(options.out / "figures")


def _of_piece(found: FinishedPiece) -> dict[str, Any]:
    """Return what run.json of the whole says of a piece."""
    keys = ("command", "platform", "commit", "jobs", "dask", "wall_time_s")
    return {**found.piece.record(), **{key: found.run.get(key) for key in keys}}


if __name__ == "__main__":
    sys.exit(main())
