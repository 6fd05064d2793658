"""From a study's folder to its report: report.md and figures/, then report.html and report.pdf."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from icl_estimators.files import write_whole
from icl_estimators.locking import sole_writer
from icl_estimators.reporting.compact import remove_tables, write_tables
from icl_estimators.reporting.convert import FORMATS, REMEDY, missing_packages, require_packages, write_html, write_pdf
from icl_estimators.reporting.figures.inline import Drawings, draw_inline
from icl_estimators.reporting.figures.saving import save_figure
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted
from icl_estimators.reporting.results import Results, read_results
from icl_estimators.reporting.sections import (
    answer,
    bias,
    budget,
    data,
    design,
    enumeration,
    first_page,
    likeness,
    maps,
    mechanism,
    observed,
    read_out,
    risk,
    smoothing,
    smoothing_design,
    trust,
)

__all__ = ["SECTIONS", "build_report", "listed", "make_report", "remove_report", "report_page", "write_report"]

Section = Callable[[Page, Results], None]

SECTIONS: tuple[Section, ...] = (
    smoothing_design.add_smoothing_design,
    enumeration.add_enumeration,
    enumeration.add_exact_budget,
    first_page.add_first_page,
    first_page.add_rules,
    answer.add_answer,
    first_page.add_rules,  # where the answer is the headline table
    likeness.add_likeness,
    likeness.add_strategies,
    budget.add_budget,
    data.add_data,
    observed.add_log_loss,
    data.add_cumulative,
    data.add_orders,
    data.add_concentration,
    design.add_design,
    risk.add_kl,
    risk.add_regret,
    risk.add_infinite,
    risk.add_differences,
    risk.add_pairs,
    risk.add_runs,
    smoothing.add_smoothing,
    maps.add_maps,
    maps.add_entropy,
    bias.add_decomposition,
    bias.add_signed_bias,
    mechanism.add_attention,
    mechanism.add_circuit,
    read_out.add_read_out,
    maps.add_training,
    trust.add_checks,
    trust.add_provenance,
    trust.add_definitions,
)
"""What a report has, in order; each adds nothing where its tables are not there."""

NEEDS_RISK: frozenset[Section] = frozenset(
    {
        first_page.add_first_page,
        first_page.add_rules,
        answer.add_answer,
        observed.add_log_loss,
        likeness.add_likeness,
        likeness.add_strategies,
        budget.add_budget,
        maps.add_maps,
        maps.add_entropy,
        maps.add_training,
        design.add_design,
        risk.add_kl,
        risk.add_regret,
        risk.add_infinite,
        risk.add_differences,
        risk.add_pairs,
        risk.add_runs,
    }
)
"""The sections that take risk.csv for granted: left out of a report of ``smoothing`` or ``exact``."""

_CITATION = re.compile(r"(?<![\\\w])@\w")
_LIST = "figures.json"  # the figures of the report, for whoever removes it


def build_report(folder: Path, formats: Iterable[str] = ("html", "pdf")) -> list[Path]:
    """Build the report of a study from the tables in its folder alone.

    Parameters
    ----------
    folder : Path
        What ``evaluate``, ``smoothing``, ``identify`` or ``exact`` wrote.
    formats : iterable of {"html", "pdf"}
        Beside report.md and the figures, which are always written.

    Returns
    -------
    list of Path
        report.md, figures, ``tables/headline.*``, and the formats asked for.

    Raises
    ------
    InputError
        If the folder holds no study, a table cannot be read, a package is missing, or another process is writing to
        the folder.
    """
    formats = tuple(formats)
    require_packages(formats)
    read_results(folder)  # a folder without a study is left as it is
    with sole_writer(folder):
        results = read_results(folder)
        title, page = report_page(results)
        remove_report(folder)
        with write_whole(folder / _LIST) as temporary:
            temporary.write_text(json.dumps({"figures": [picture.stem for picture in page.pictures]}), encoding="utf-8")
        paths = write_report(page, title, folder / "report.md", formats)
        documents = len(paths) - len(formats)
        return [*paths[:documents], *write_tables(folder, results), *paths[documents:]]


def make_report(
    folder: Path, formats: Sequence[str] | None, *, wanted: bool = True, warn: Callable[[str], None] | None = None
) -> list[Path]:
    """Make the report that was asked for, or as much of it as is possible on this machine; return the paths.

    Parameters
    ----------
    folder : Path
        Of a study.
    formats : sequence of {"html", "pdf"}, optional
        By default those whose packages are installed.
    wanted : bool
        If false, only remove the report of an earlier study.
    warn : callable, optional
        Takes a line on what was left out by default.

    Raises
    ------
    InputError
        As :func:`build_report`.
    """
    if not wanted:
        remove_report(folder)
        return []
    possible = tuple(name for name in FORMATS if not missing_packages([name]))
    made = possible if formats is None else tuple(formats)
    paths = build_report(folder, made)
    lacking = missing_packages(FORMATS) if formats is None else []
    if lacking and warn is not None:
        left_out = " and ".join(f"report.{name}" for name in FORMATS if name not in made)
        verb = "is" if len(lacking) == 1 else "are"
        warn(f"{left_out} left out, because {' and '.join(lacking)} {verb} not installed: {REMEDY}")
    return paths


def report_page(results: Results) -> tuple[str, Page]:
    """Return the title and the page of a study's report."""
    page = Page()
    options = results.options
    count = counted(len(options["estimators"]), "estimator")
    if results.kind == "smoothing":
        title, subtitle = smoothing_design.titles(results)
    elif results.kind == "exact":
        title, subtitle = enumeration.titles(results)
    elif results.observed:
        title = f"Which rule predicts {options['data']} best? {count}"
        subtitle = f"{counted(options['n_predictions'], 'prediction')} of {escape(str(options['data']))}"
    else:
        title = f"Which estimator is it? {count} on {counted(options['chains'], 'fresh Markov chain')}"
        subtitle = (
            f"{counted(options['chains'], 'chain')} × {counted(options['sequences_per_chain'], 'sequence')} × "
            f"{counted(options['length'], 'token')}, K = {options['states']} states, α = {options['concentration']:g}, "
            f"{options['start']} start, seed {options['seed']}"
        )
    page.text(f"# {escape(title)}", f"{subtitle}. Built from the tables beside it by {code('icl-estimators')}.")
    for add in SECTIONS:
        if "risk" in results or add not in NEEDS_RISK:
            add(page, results)
    if _CITATION.search(page.markdown()):
        page.heading("References", "references")
        page.text("::: {#refs}\n:::")
    return title, page


def write_report(
    page: Page, title: str, markdown: Path, formats: Sequence[str], references: Path | None = None
) -> list[Path]:
    """Write a page, its figures, and what is made of them; return the paths.

    Parameters
    ----------
    page : Page
    title : str
    markdown : Path
        Where the Markdown goes; figures go to ``figures/`` beside it.
    formats : sequence of {"html", "pdf"}
    references : Path, optional
        CSL JSON; by default the package's own.
    """
    with write_whole(markdown) as temporary:
        temporary.write_text(page.markdown(), encoding="utf-8", newline="\n")
    paths = [markdown]
    for picture in page.pictures:
        paths += save_figure(picture.figure, markdown.parent / "figures" / picture.stem)
    for name in formats:
        if name == "html":
            drawings = Drawings()
            for picture in page.pictures:
                draw_inline(drawings, picture.stem, picture.figure, picture.number, picture.alt)
            paths.append(write_html(markdown, title, references, drawings.by_stem, drawings.css()))
        else:
            paths.append(write_pdf(markdown, title, references))
    return paths


def listed(paths: Iterable[Path]) -> list[str]:
    """Return paths for printing, all figures of a folder on one line.

    Examples
    --------
    >>> listed([Path("out/risk.csv"), Path("out/figures/kl.svg"), Path("out/figures/kl.pdf")])
    ['out/risk.csv', 'out/figures/*.svg, *.pdf']
    """
    short = {"figures": "*.svg, *.pdf", "tables": "headline.tex, .md, .html, .typ"}
    lines = (str(path.parent / short.get(path.parent.name, path.name)) for path in paths)
    return list(dict.fromkeys(lines))


def remove_report(folder: Path) -> None:
    """Remove a report with its tables and figures, so that none of an earlier study is left beside new results."""
    with suppress(OSError, ValueError, TypeError, KeyError):  # there is no report, or its list cannot be read
        for stem in json.loads((folder / _LIST).read_text(encoding="utf-8"))["figures"]:
            for suffix in ("svg", "pdf"):
                (folder / "figures" / f"{Path(stem).name}.{suffix}").unlink(missing_ok=True)
    with suppress(OSError):  # another's file is in it, or it is not there
        (folder / "figures").rmdir()
    remove_tables(folder)
    for name in (_LIST, "report.md", "report.html", "report.pdf"):
        (folder / name).unlink(missing_ok=True)
