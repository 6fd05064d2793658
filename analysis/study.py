"""The study: every question answered; tables in data/study, report in reports/: ``python -m analysis.study``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from analysis import (
    attention_at_the_start,
    construction,
    coverage,
    kl_to_truth,
    leftover_mass,
    masses,
    match_mass,
    model_size,
    refitted_readout,
)
from analysis.claims import Claim, claims_table
from analysis.questions import Answer, Sizes
from icl_estimators.engine.executors import one_thread
from icl_estimators.engine.folder import write_json
from icl_estimators.files import sha256
from icl_estimators.locking import sole_writer
from icl_estimators.provenance import library_versions
from icl_estimators.reporting.build import write_report
from icl_estimators.reporting.convert import FORMATS, require_packages
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted, interval, spell
from icl_estimators.resources import shipped_checkpoint

__all__ = ["answers", "build", "main"]

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = ROOT / "data" / "study" / "coverage.csv"
TITLE = "What a trained induction head estimates"


def answers(sizes: Sizes, say: Callable[[str], None] = lambda line: None) -> dict[str, Answer]:
    """Answer every question, by the name it has in the template."""
    found: dict[str, Answer] = {}
    began = time.perf_counter()

    def note(name: str, answer: Answer) -> None:
        found[name] = answer
        say(f"{name}: {time.perf_counter() - began:.0f} s")

    with one_thread():
        note("model_size", model_size.answer())
        note("kl_to_truth", kl_to_truth.answer(sizes))
        attention = masses.attend(sizes)
        shown = attention_at_the_start.example(sizes)
        note("attention_at_the_start", attention_at_the_start.answer(sizes, attention, shown))
        note("match_mass", match_mass.answer(sizes, attention, match_mass.runs(sizes)))
        note("construction", construction.answer(sizes))
        note("leftover_mass", leftover_mass.answer(sizes))
        note("refitted_readout", refitted_readout.answer(sizes))
        note("coverage", coverage.answer(coverage.read(COVERAGE)))
    return found


def build(found: dict[str, Answer], data: Path, reports: Path, template: Path, formats: Sequence[str]) -> list[Path]:
    """Write the tables to `data` and the report to `reports`; return the report's paths."""
    for answer in found.values():
        answer.write(data)
    claims = [claim for answer in found.values() for claim in answer.claims]
    claims_table(claims, data / "claims.csv")
    checkpoint = shipped_checkpoint(3)
    versions = library_versions("pandas", "statsmodels", "matplotlib")
    write_json(
        data / "run.json",
        {
            "version": versions.pop("icl-estimators"),
            "command": "python -m analysis.study",
            "libraries": versions,
            "inputs": {} if checkpoint is None else {checkpoint.name: sha256(checkpoint)},
        },
    )
    page = Page()
    for block in template.read_text(encoding="utf-8").strip().split("\n\n"):
        name = block.strip()
        if not (name.startswith("{{") and name.endswith("}}")):
            page.text(block)
        elif name == "{{verdicts}}":
            _add_verdicts(page, claims)
        elif name == "{{provenance}}":
            _add_provenance(page, data, found)
        else:
            found[name[2:-2]].add_to(page, name[2:-2].replace("_", "-"))
    return write_report(page, TITLE, reports / "study.md", formats, template.with_name("references.json"))


def _add_verdicts(page: Page, claims: Sequence[Claim]) -> None:
    counts = Counter(claim.verdict for claim in claims)
    parts = (f"{counts['holds']} hold", f"{counts['fails']} fail", f"{counts['not distinguishable']} cannot be decided")
    page.text(
        f"Of {counted(len(claims), 'test')} of the article’s claims "
        f"{', '.join(part for part in parts if not part.startswith('0 '))}. A claim "
        "*holds* if the whole 95 % interval of its measure satisfies the rule, *fails* if no part of it does, and is "
        "*not distinguishable* otherwise."
    )
    rows = [[escape(claim.claim), f"**{claim.verdict}**", _number(claim), escape(claim.measure)] for claim in claims]
    page.table(
        "claims",
        ["claim", "verdict", "estimate [95 %]", "measure"],
        rows,
        f"The article’s claims, measured. They are also in {code('data/study/claims.csv')}, with the rules.",
        left=4,
    )
    rules = dict.fromkeys(claim.rule.text for claim in claims)
    page.text(f"The rules: {'; '.join(escape(rule) for rule in rules)}.")


def _number(claim: Claim) -> str:
    if claim.low == claim.high == claim.estimate:
        return f"{claim.estimate:,.0f}" if claim.estimate == int(claim.estimate) else spell(claim.estimate)
    return interval(claim.estimate, claim.low, claim.high, 3)


def _add_provenance(page: Page, data: Path, found: dict[str, Answer]) -> None:
    tables = ", ".join(code(f"{name}.csv") for answer in found.values() for name in answer.tables)
    page.text(
        f"{code('make study')} reproduces every number, figure and sentence of this report, from the table "
        f"{code('coverage.csv')} that {code('make coverage')} writes. The tables behind it are in "
        f"{code('data/study')}: {tables}, {code('claims.csv')}. The versions that made them are in {code('run.json')}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the study and write it; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m analysis.study", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=ROOT / "data" / "study", metavar="DIR", help="where tables go")
    parser.add_argument("--reports", type=Path, default=ROOT / "reports", metavar="DIR", help="where the report goes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes")
    options = parser.parse_args(argv)
    require_packages(FORMATS)
    with sole_writer(options.data), sole_writer(options.reports):
        found = answers(Sizes(jobs=options.jobs), say=lambda line: print(line, file=sys.stderr))
        paths = build(found, options.data, options.reports, ROOT / "reports" / "template.md", FORMATS)
    for path in paths:
        if path.parent.name != "figures":
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
