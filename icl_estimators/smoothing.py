"""Which pseudo-count does an estimator act like? ``python -m icl_estimators.smoothing``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.data_options import (
    DATA_FLAGS,
    data_files,
    data_parent,
    has_data,
    read_data,
    refuse_data_flags,
)
from icl_estimators.locking import sole_writer
from icl_estimators.options import (
    Parser,
    add_report_flags,
    command,
    count,
    estimator_parent,
    flags_of,
    level,
    refuse_flags,
    sampling_parent,
    warn,
)
from icl_estimators.progress import progress_reports

if TYPE_CHECKING:
    from icl_estimators.api import Smoothing
    from icl_estimators.sources import ObservedSequences

__all__ = ["main"]

_OF_OBSERVED = DATA_FLAGS | {
    *("estimators", "checkpoints", "level", "length", "states", "concentration", "device"),
    *("by", "families", "out", "force", "report", "no_report", "quiet"),
}


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.smoothing",
        description="Find which pseudo-count each estimator acts like, (n_vw + α)/(n_v + Kα) after the token v, with "
        "intervals: over\nall prefixes, by context length and by visits n_v; whether another family of rules describes "
        "it better; and what\neach part of a trained model's mechanism contributes.",
        parents=[estimator_parent(), sampling_parent(), data_parent()],
    )
    parser.add_argument(
        "--by",
        metavar="A,B",
        help="groups of prefixes to fit: overall, context-length, visits (default: all three)",
    )
    parser.add_argument(
        "--families",
        metavar="A,B",
        help="rules to compare with one pseudo-count for all prefixes: affine, bonus, unigram-mixture, recency, "
        "asymmetric, temperature, or none (default: all)",
    )
    parser.add_argument("--level", type=level, default=0.95, metavar="P", help="confidence level (default 0.95)")
    parser.add_argument(
        "--jobs",
        type=count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of processes; it does not change the tables (default: all cores)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("icl-smoothing"), metavar="DIR", help="output folder (default icl-smoothing)"
    )
    parser.add_argument("--force", action="store_true", help="overwrite another study in the output folder")
    add_report_flags(parser)
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.add_argument(
        "--no-interventions",
        action="store_true",
        help="do not intervene on the trained model: no interventions.csv",
    )
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run a smoothing study and write its folder; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(arguments)
    with ExitStack() as held:
        return _main(options, arguments, held)


def _main(options: argparse.Namespace, arguments: Sequence[str], held: ExitStack) -> int:
    if options.report:
        from icl_estimators.reporting.convert import require_packages

        require_packages(options.report)  # before the work, not after it
    if has_data(options):
        refuse_flags(options, options.given.keys() - _OF_OBSERVED, "observed sequences")
    refuse_data_flags(options)
    began = time.perf_counter()
    data = read_data(options)
    result, inputs = _run(options, held) if data is None else _observed(options, data, held)
    from icl_estimators.reporting.build import listed, make_report, remove_report
    from icl_estimators.reporting.provenance import provenance

    result.run.update(provenance("icl_estimators.smoothing", arguments, inputs))
    result.run["device"] = options.device
    result.run["wall_time_s"] = round(time.perf_counter() - began, 3)
    remove_report(options.out)  # that of an earlier study which --force overwrites
    paths = result.save(options.out, force=options.force)
    if not options.quiet:
        print(result.summary(), flush=True)
    paths += _figures(result, options.out / "figures")
    # The report's figures come last: it has some under the same names, and is built again to the same bytes.
    tell = None if options.quiet else warn
    paths += make_report(options.out, options.report, wanted=not options.no_report, warn=tell)
    if not options.quiet:
        print("\nWrote")
        for line in listed(paths):
            print(f"  {line}")
    return 0


def _run(options: argparse.Namespace, held: ExitStack) -> tuple[Smoothing, list[Path]]:
    from icl_estimators.api import Smoothing
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.smoothing import SmoothingDesign, run_smoothing
    from icl_estimators.experiments.study import ChainOptions, Study
    from icl_estimators.files import require_writable
    from icl_estimators.pseudo_counts import FAMILIES, GROUPINGS

    flags = flags_of(options, ChainOptions)
    study = Study.build(options.estimators, warn=warn, dashes="--", decomposition_chains=0, **flags)
    families = () if options.families == "none" else _names(options.families, FAMILIES)
    by = _names(options.by, GROUPINGS)
    if families and "overall" not in by:  # families are compared over all prefixes
        refuse_flags(options, ["families"], f"--by {','.join(by)}, which omits overall")
    design = SmoothingDesign(study, by, families, not options.no_interventions)  # type: ignore[arg-type]
    record = {"options": design.record(), "identity": study_identity(study.estimators)}
    held.enter_context(sole_writer(options.out))
    check_folder(options.out, record, force=options.force)
    require_writable(options.out / "figures")
    with progress_reports(quiet=options.quiet) as (progress, notice):
        result = run_smoothing(design, jobs=options.jobs, progress=progress, notice=notice)
    return Smoothing.of(result), list(weight_files(study.estimators).values())


def _observed(options: argparse.Namespace, data: ObservedSequences, held: ExitStack) -> tuple[Smoothing, list[Path]]:
    from icl_estimators.api import Smoothing
    from icl_estimators.engine.folder import check_folder
    from icl_estimators.estimators.identity import study_identity
    from icl_estimators.experiments.assembly import weight_files
    from icl_estimators.experiments.observed_smoothing import ObservedSmoothing, run_observed_smoothing
    from icl_estimators.experiments.observed_study import ObservedOptions, ObservedStudy
    from icl_estimators.files import require_writable
    from icl_estimators.pseudo_counts import FAMILIES, GROUPINGS

    flags = flags_of(options, ObservedOptions)
    study = ObservedStudy.build(data, options.estimators, warn=warn, dashes="--", **flags)
    families = () if options.families == "none" else _names(options.families, FAMILIES)
    by = _names(options.by, GROUPINGS)
    design = ObservedSmoothing(study, by, families)  # type: ignore[arg-type]
    if not options.quiet:
        warn(data.described())
        if families and design.no_families:
            warn(f"no families: {design.no_families}")
    record = {"options": design.record(), "identity": study_identity(study.estimators)}
    held.enter_context(sole_writer(options.out))
    check_folder(options.out, record, force=options.force)
    require_writable(options.out / "figures")
    with progress_reports(quiet=options.quiet, unit="estimator") as (progress, _):
        result = run_observed_smoothing(design, progress=progress)
    return Smoothing.of(result), [*data_files(options), *weight_files(study.estimators).values()]


def _names(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    if text is None:
        return default
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _figures(result: Smoothing, folder: Path) -> list[Path]:
    """Draw what the tables allow, and remove what an earlier study left under the same names."""
    from icl_estimators.reporting.figures.saving import save_figure
    from icl_estimators.reporting.figures.smoothing import mechanism_figure, prediction_figure, pseudo_count_figure

    paths: list[Path] = []
    stems = {name: folder / name for name in ("pseudo_count", "prediction", "mechanism")}
    smoothing = result.smoothing
    by_visits = (smoothing["by"] == "visits") & (smoothing["parameter"] == "pseudo_count")
    drawn = {}
    if by_visits.any():
        drawn["pseudo_count"] = pseudo_count_figure(smoothing, result.run)
    if (smoothing["family"] == "empirical").any():
        drawn["prediction"] = prediction_figure(smoothing, result.run)
    if "interventions" in result.tables:
        drawn["mechanism"] = mechanism_figure(result.interventions, result.run)
    for name, stem in stems.items():
        if name in drawn:
            paths += save_figure(drawn[name], stem)
        else:
            for suffix in (".svg", ".pdf"):
                stem.with_suffix(suffix).unlink(missing_ok=True)
    return paths


if __name__ == "__main__":
    sys.exit(main())
