"""Exact risk of estimators at short context lengths: ``python -m icl_estimators.exact``."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from icl_estimators.options import Parser, command, concentration, count, estimator_parent, make_estimators

if TYPE_CHECKING:
    from icl_estimators.estimators import Estimator
    from icl_estimators.sources import ChainLaw

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
    return parser


def _print_budgets(estimators: Sequence[Estimator], law: ChainLaw, options: argparse.Namespace) -> None:
    from icl_estimators.experiments.regret_budget import PARTS, exact_budget
    from icl_estimators.text import number, text_table

    budgets = [exact_budget(estimator, options.context_length, law) for estimator in estimators]
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["estimator", "context_length", "part", "estimate"])
        for budget in budgets:
            for part, value in {"regret": budget.regret, **budget.parts}.items():
                spelled = "" if math.isnan(value) else repr(value + 0.0)
                writer.writerow([budget.estimator, budget.context_length, part, spelled])
        return
    print(
        f"Where each estimator loses at n = {options.context_length}: its regret in nats, and the parts that add "
        f"up to it.\nExact, no Monte Carlo error; K = {law.n_states}, α = {law.concentration:g}, uniform start\n"
    )
    rows = [
        [budget.estimator, *(number(value) for value in (budget.regret, *(budget.parts[part] for part in PARTS)))]
        for budget in budgets
    ]
    print(text_table(["estimator", "regret", *(part.replace("_", " ") for part in PARTS)], rows))
    print(
        "\norder: it depends on the order of the same transitions; other rows: on transitions out of other states than"
        "\nthe current one; label asymmetry: on the names of the other states; self bias: it treats the current token"
        "\ndifferently. The rest depends on the counts only: amount is the regret of the nearest add-α rule at each"
        "\nnumber of visits, and shape is the rest, which may be negative. An infinite regret is not divided."
    )


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Print the exact risk; return the exit status."""
    options = _parser().parse_args(argv)
    from icl_estimators.experiments.exact import EXACT_METRICS, check_exact_budget, exact_risk
    from icl_estimators.experiments.tuning import gamma_tuner
    from icl_estimators.metrics import METRICS
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
    if options.budget:
        _print_budgets(estimators, law, options)
        return 0
    results = [exact_risk(estimator, options.context_length, law) for estimator in estimators]
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["estimator", "context_length", "metric", "estimate"])
        for result in results:
            for n in range(options.context_length):
                for metric in EXACT_METRICS:
                    writer.writerow([result.estimator, n + 1, metric, repr(float(result.metrics[metric][n]))])
        return 0
    from icl_estimators.experiments.assembly import gamma_record
    from icl_estimators.text import gamma_text, number, text_table

    n_last = options.context_length
    prefixes = law.n_states**n_last
    print(
        f"Exact risk, no Monte Carlo error: all {prefixes:,} prefixes of {n_last} tokens; "
        f"K = {law.n_states}, α = {law.concentration:g}, {law.start} start\n"
    )
    print("Expected KL(truth ‖ estimate) in nats, by context length n")
    shown = [n for n in range(1, n_last + 1) if n_last <= 8 or n in (1, 2, 3, 4, 6, 8, 10, 12, n_last)]
    print(
        text_table(
            ["estimator", *(f"n={n}" for n in shown)],
            [[r.estimator, *(number(r.metrics["kl_nats"][n - 1]) for n in shown)] for r in results],
        )
    )
    print(f"\nEvery metric at n = {n_last}")
    columns = [METRICS[metric] for metric in EXACT_METRICS]
    print(
        text_table(
            ["estimator", *(column.title for column in columns)],
            [[r.estimator, *(number(r.metrics[column.name][-1]) for column in columns)] for r in results],
        )
    )
    print()
    for column in columns:
        unit = f", {column.unit}" if column.unit else ""
        print(f"{column.title}{unit}: {column.meaning}")
    record = gamma_record(estimators)
    used = gamma_text(record["default_gamma"], record["tuned_gamma"])
    if used:
        print(f"\n{used}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
