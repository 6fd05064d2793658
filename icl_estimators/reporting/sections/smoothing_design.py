"""What a smoothing study did, for a report of its own."""

from __future__ import annotations

from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted
from icl_estimators.reporting.results import Results
from icl_estimators.reporting.sections.smoothing import pseudo_counts

__all__ = ["add_smoothing_design", "named_estimators", "titles"]


def titles(results: Results) -> tuple[str, str]:
    """Return the title and the subtitle of the report."""
    options = results.options
    title = f"Which pseudo-count does it act like? {counted(len(options['estimators']), 'estimator')}"
    if results.observed:
        return title, (
            f"{escape(options['data'])}: {counted(options['n_sequences'], 'sequence')}, "
            f"{counted(options['n_predictions'], 'prediction')}, K = {options['states']} states"
        )
    return title, (
        f"{counted(options['chains'], 'chain')} × {counted(options['sequences_per_chain'], 'sequence')} × "
        f"{counted(options['length'], 'token')}, K = {options['states']} states, α = {options['concentration']:g}, "
        f"{options['start']} start, seed {options['seed']}"
    )


def named_estimators(results: Results) -> str:
    """Name the estimators as the report does, each with its name for the command line."""
    shown = ((results.display(name), name) for name in results.options["estimators"])
    return "; ".join(escape(text) if text == name else f"{escape(text)} ({code(name)})" for text, name in shown)


def add_smoothing_design(page: Page, results: Results) -> None:
    """Add the design, told from run.json."""
    if results.kind != "smoothing":
        return
    options = results.options
    page.heading("Design", "design")
    unit = results.unit
    if results.observed:
        drawn = (
            f"{escape(options['data'])}, {counted(options['n_sequences'], 'sequence')}. Prefixes are the tokens of "
            f"a sequence so far, or the last {options['length']} of them as a fresh prefix."
        )
    else:
        drawn = (
            f"{counted(options['chains'], 'fresh chain')}; {counted(options['sequences_per_chain'], 'sequence')} "
            f"of {options['length']} tokens from each."
        )
    page.items(
        [
            f"**Data.** {drawn} Every prefix in which the current token was left before is used.",
            f"**Estimators.** {named_estimators(results)}.",
            f"**Intervals.** {results.level_text}, clustered on {unit}s: the {unit} is the independent unit. Families "
            f"of rules are compared on {unit}s that were not used for their fit.",
        ]
    )
    if not any(pseudo_counts(results, by) for by in ("visits", "overall")):
        number = results.run["data"]["n_units"] if results.observed else options["chains"]
        page.text(
            f"{counted(number, unit)} {'is' if number == 1 else 'are'} too few for intervals that can be trusted, so "
            f"no pseudo-count is shown here; the estimates are in {code('smoothing.csv')}."
        )
