"""The tables behind the README's numbers, data/readme, and its sentences: ``python -m analysis.readme_numbers``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from analysis import readme
from analysis.questions import write_frame
from icl_estimators import compare, effective_smoothing, identify_estimator, train
from icl_estimators.engine.folder import write_json
from icl_estimators.provenance import library_versions
from icl_estimators.resources import shipped_checkpoint
from icl_estimators.validation import InputError

__all__ = ["TABLES", "main"]

LENGTHS = [3, 6, 12, 24, 50, 100, "mean"]
VISITS = [1, 2, 5, 10, 20, 40]
OTHER_PRIOR = 0.3


def evaluate(runs: Path, jobs: int) -> dict[str, pd.DataFrame]:
    """Return what `evaluate` finds with its default options."""
    found = compare(decomposition_chains=0, jobs=jobs)
    risk = found.risk.query("metric in ('regret_nats', 'p_infinite')")
    smoothing = found.smoothing.query("estimator == 'transformer' and by == 'visits' and parameter == 'pseudo_count'")
    attention = found.attention.query("estimator == 'transformer'")
    return {
        "evaluate_risk": risk[risk["context_length"].isin([*LENGTHS, *map(str, LENGTHS)])],
        "evaluate_smoothing": smoothing[smoothing["value"].isin(VISITS)],
        "evaluate_attention": attention[attention["context_length"] != "mean"],
    }


def smoothing(runs: Path, jobs: int) -> dict[str, pd.DataFrame]:
    """Return what `smoothing` finds of the shipped model, on the chains of its default options.

    What its interventions find is in data/study/leftover_mass.csv, from the same chains.
    """
    found = effective_smoothing(
        ["transformer"],
        by=["overall", "visits"],
        families=["add-constant", "temperature"],
        interventions=False,
        jobs=jobs,
    )
    fits = found.smoothing.query("estimator == 'transformer' and family != 'empirical'")
    return {"smoothing": fits[(fits["by"] == "overall") | fits["value"].isin(VISITS)]}


def training_runs(runs: Path, jobs: int) -> dict[str, pd.DataFrame]:
    """Return the pseudo-counts of the shipped runs, and of their recipe."""
    checkpoints = [path for path in (shipped_checkpoint(3, seed) for seed in range(10)) if path is not None]
    found = effective_smoothing(
        ["transformer"], checkpoints=checkpoints, by=["overall"], families=[], interventions=False, jobs=jobs
    )
    return {"training_runs": found.smoothing.query("parameter in ('pseudo_count', 'between_seed_sd_log')")}


def other_prior(runs: Path, jobs: int) -> dict[str, pd.DataFrame]:
    """Train the model on chains of another concentration; return its pseudo-counts on the usual chains."""
    folder = runs / "other-prior"
    arguments = ["--seed", "0", "--concentration", f"{OTHER_PRIOR:g}", "--out", str(folder), "--resume", "--quiet"]
    if train.main(arguments):
        raise InputError(f"training in {folder} failed")
    found = effective_smoothing(
        ["transformer"],
        checkpoints=folder / "k3-seed0.safetensors",
        by=["visits"],
        families=[],
        interventions=False,
        jobs=jobs,
    )
    rows = found.smoothing.query("estimator == 'transformer' and parameter == 'pseudo_count'")
    return {"other_prior": rows[rows["value"].isin(VISITS)].assign(trained_at=OTHER_PRIOR)}


TABLES: dict[str, Callable[[Path, int], dict[str, pd.DataFrame]]] = {
    "evaluate": evaluate,
    "smoothing": smoothing,
    "training-runs": training_runs,
    "other-prior": other_prior,
}
_SCREEN = "identify"


def main(argv: Sequence[str] | None = None) -> int:
    """Make the tables, then put their numbers into the README; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.readme_numbers", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", choices=[*TABLES, _SCREEN, "none"], action="append", help="make these tables (default: all)"
    )
    parser.add_argument("--runs", type=Path, default=Path("training-runs"), metavar="DIR", help="where it trains")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes; they change no number")
    options = parser.parse_args(argv)
    wanted = [name for name in TABLES if name in (options.only or TABLES)]
    if not options.only or _SCREEN in options.only:
        found = identify_estimator(jobs=options.jobs).summary()
        readme.SCREEN.write_text(found + "\n", encoding="utf-8")
    for name in wanted:
        for stem, frame in TABLES[name](options.runs, options.jobs).items():
            write_frame(frame, readme.DATA / f"{stem}.csv")
        print(f"{name}: done", file=sys.stderr)
    if wanted:
        write_json(
            readme.DATA / "run.json",
            {"command": "python -m analysis.readme_numbers", "libraries": library_versions("pandas")},
        )
    for change in readme.refresh():
        print(change)
    return 0


if __name__ == "__main__":
    sys.exit(main())
