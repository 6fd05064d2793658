"""The design in ADEMP form: aims, data, estimands, methods, performance measures."""

from __future__ import annotations

from icl_estimators.band_coverage import band_note
from icl_estimators.reporting.markdown import Page, code, escape
from icl_estimators.reporting.numbers import counted
from icl_estimators.reporting.results import Results

__all__ = ["add_design"]

_FEW = 200


def add_design(page: Page, results: Results) -> None:
    """Add the design, told from run.json."""
    page.heading("Design", "design")
    page.text("In the ADEMP form of @morris2019: aims, data, estimands, methods, performance measures.")
    page.items(_observed(results) if results.observed else _simulated(results))


def _names(results: Results) -> str:
    """Name the estimators as the report does, each with its name for the command line."""
    shown = ((results.display(name), name) for name in results.options["estimators"])
    return "; ".join(
        escape(display) if display == name else f"{escape(display)} ({code(name)})" for display, name in shown
    )


def _simulated(results: Results) -> list[str]:
    options = results.options
    k, length = options["states"], options["length"]
    source = options.get(
        "source_description", f"Dirichlet rows, α = {options['concentration']:g}, {options['start']} start"
    )
    bands = (
        f" Bands along context length are simultaneous over all {length} lengths [sup-t, @montielolea2019]; the "
        "pointwise interval at a single length is narrower."
        if length > 1
        else ""
    )
    nested = (
        f" Bias and variance come from a separate nested design, "
        f"{counted(options['decomposition_chains'], 'chain')} × "
        f"{counted(options['decomposition_sequences'], 'sequence')}."
        if options.get("decomposition_chains")
        else ""
    )
    regret = (
        "*Regret* is the excess over the Bayes rule’s KL, with the chain integrated out; it is exact for this source."
        if results.exact_posterior
        else "Regret is not defined, because the posterior given a prefix has no closed form for these chains."
    )
    items = [
        "**Aims.** To find out which estimator of a Markov chain’s next-token law each model or rule acts like, and "
        "how far each is from the best one.",
        f"**Data.** {counted(options['chains'], 'fresh chain')} of K = {k} states, {escape(source)}; "
        f"{counted(options['sequences_per_chain'], 'sequence')} of {length} + 1 tokens from each. Seed "
        f"{options['seed']}. *Context length n* is the number of tokens read; the prediction p̂ is of token n + 1, "
        f"whose true law is the row P[t_n].",
        "**Estimands.** The expected divergence of p̂ from the true row, mainly KL(P[t_n] ‖ p̂) in nats (natural "
        f"logarithms). {regret} KL is infinite where p̂ gives probability 0 to a possible token. The share of "
        "such cases is reported; probabilities are not floored.",
        f"**Methods.** {counted(len(options['estimators']), 'estimator')}: {_names(results)}. The reference for "
        f"differences is {escape(str(options['reference']))}.",
        f"**Performance measures.** Means over chains with {results.level_text} intervals; the chain is the "
        f"independent unit, so standard errors are of chain means.{bands}{_caveat(results)} Differences between "
        f"estimators are paired on the same draws.{nested}",
    ]
    items[3] += _gamma(results)
    return [item.replace("P[t_n]", "P\\[t~n~\\]") for item in items]


def _gamma(results: Results) -> str:
    """Say which read-out scales were used, and which of them were tuned."""
    used, tuned = results.run.get("gamma", {}), results.run.get("tuned_gamma", {})
    if not used:
        return ""
    text = f" Read-out scales γ: {', '.join(f'{escape(name)} {value:.15g}' for name, value in used.items())}."
    if tuned:
        text += (
            f" Of these, {' and '.join(escape(name) for name in tuned)} "
            f"{'was' if len(tuned) == 1 else 'were'} tuned to this law and length, on separate chains."
        )
    return text


def _caveat(results: Results) -> str:
    """Say what few chains do to the coverage of bands and intervals."""
    options, caveats = results.options, []
    if results.length > 1:
        metric = "regret_nats" if results.exact_posterior else "kl_nats"
        note = band_note(
            metric,
            length=results.length,
            chains=options["chains"],
            sequences_per_chain=options["sequences_per_chain"],
        )
        caveats.append(
            f"in simulations of studies like this one, for {metric}, {note}; each metric has its own note in the tables"
        )
    if results.options["chains"] < _FEW:
        caveats.append(
            f"with fewer than {_FEW} chains, a pointwise interval for a quantity as skewed as KL has less than its "
            "nominal coverage (0.91 instead of 0.95 with 50 chains at n = 100)"
        )
    return "".join(f" Caveat: {escape(caveat)}." for caveat in caveats)


def _observed(results: Results) -> list[str]:
    options = results.options
    labels = [escape(str(label)) for label in options["labels"]]
    return [
        "**Aims.** To find out which rule predicts the next token of a real sequence best.",
        f"**Data.** {escape(str(options['data']))}: {counted(options['n_sequences'], 'sequence')}, "
        f"{counted(options['n_predictions'], 'prediction')}, {counted(options['states'], 'state')} "
        f"({', '.join(labels)}). {escape(results.run.get('data', {}).get('about', ''))} The true law is not known.",
        "**Estimands.** The mean log loss −log p̂ of the observed next token, in nats. Each token after the first is "
        "predicted from the tokens before it.",
        f"**Methods.** {counted(len(options['estimators']), 'estimator')}: {_names(results)}. Rows marked "
        f"“last {options['length']}” (`:window={options['length']}` in the tables) read only the last "
        f"{options['length']} tokens, as a fresh prefix; the others "
        f"read the whole history.{_gamma(results)}",
        "**Performance measures.** The mean over all predictions"
        + (
            f", with {results.level_text} intervals clustered on sequences."
            if options["n_sequences"] > 1
            else "; one sequence has no independent units, so there is no interval."
        ),
    ]
