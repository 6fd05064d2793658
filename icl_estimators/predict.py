"""What comes after a prompt, according to each estimator: ``python -m icl_estimators.predict ABACABADA``."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from icl_estimators.options import Parser, command, estimator_parent, make_estimators
from icl_estimators.sources.observed.prompt import SENTINEL, begins_with_sentinel, read_prompt
from icl_estimators.validation import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from icl_estimators.estimators import Estimator
    from icl_estimators.reporting.prompt_attention import PromptAttention

__all__ = ["attention_on", "main", "read_prompt"]

LONGEST_DISPLAY = 200
"""The longest prompt whose attention is shown: the matrices have as many rows as it has tokens."""

_CHECKED = 4096  # tokens on which estimators are checked: more would cost more than the predictions


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.predict",
        description="The next-token distribution after a prompt, according to each estimator, and where the "
        "induction head looks.",
        epilog="examples: python -m icl_estimators.predict ABACABADA\n"
        "          python -m icl_estimators.predict '^ABACA' --attention --figure abaca.svg",
        parents=[estimator_parent()],
    )
    parser.add_argument(
        "prompt",
        help="one character for each token, or labels separated by commas, semicolons or spaces: 'sun,rain,sun' "
        "(after -- if it starts with a dash); a ^ in front is the sentinel, which the construction reads, no state",
    )
    parser.add_argument(
        "--order",
        metavar="A,B,C",
        help="the states in order, including any that the prompt lacks (default: those in the prompt, sorted)",
    )
    parser.add_argument(
        "--attention",
        action="store_true",
        help="show where every layer of every estimator with attention looks: the whole matrices of a short prompt, "
        "the last row of a longer one",
    )
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="FILE",
        help="draw these matrices to a file that ends in .svg, .png or .pdf",
    )
    parser.add_argument(
        "--csv",
        action="store_true",
        help="print estimator,token,probability at full precision; with --attention, every weight in long form",
    )
    return parser


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Print the predictions; return the exit status."""
    options = _parser().parse_args(argv)
    tokens, labels = read_prompt(options.prompt, options.order)
    looks = options.attention or options.figure is not None
    flag = "--attention" if options.attention else "--figure"
    if looks and len(tokens) > LONGEST_DISPLAY:
        raise InputError(
            f"{flag} is for up to {LONGEST_DISPLAY} tokens, and the prompt has {len(tokens)}: shorten it, or leave "
            f"{flag} out"
        )
    if options.figure is not None:
        from icl_estimators.files import require_writable
        from icl_estimators.reporting.figures.saving import figure_format

        figure_format(options.figure)
        try:
            require_writable(options.figure.parent)
        except InputError:
            raise InputError(f"cannot write {options.figure}: its folder is not writable: name another file") from None
    import numpy as np

    from icl_estimators.experiments.prediction import ask

    encoded = np.array([[labels.index(token) for token in tokens]], dtype=np.int64)
    estimators = make_estimators(
        options, n_states=len(labels), concentration=1.0, check_length=min(len(tokens), _CHECKED)
    )
    rows = [
        ask(rule, encoded, place=lambda row: "the prompt", where=lambda given: "the prompt")[0, -1]
        for rule in estimators
    ]
    found: list[PromptAttention] = []
    if looks:
        found = [one for rule in estimators if (one := attention_on(rule, tokens, encoded[0])) is not None]
        if not found:
            names = ", ".join(rule.name for rule in estimators)
            raise InputError(
                f"{flag}: no estimator shows its attention ({names}): name one that does, such as construction or "
                f"transformer, or leave {flag} out"
            )
    if options.csv and options.attention:
        from icl_estimators.reporting.prompt_attention import COLUMNS

        _write_csv(COLUMNS, (row for one in found for row in one.rows()))
    elif options.csv:
        predicted = zip(estimators, rows, strict=True)
        cells = ((rule.name, *pair) for rule, row in predicted for pair in zip(labels, row.tolist(), strict=True))
        _write_csv(("estimator", "token", "probability"), cells)
    else:
        sentinel = begins_with_sentinel(options.prompt.strip(), labels)
        _print_predictions([SENTINEL, *tokens] if sentinel else tokens, labels, estimators, rows)
        if options.attention:
            _print_attention(found, estimators)
        elif len(tokens) > LONGEST_DISPLAY:
            print(
                f"\nThe construction's attention is shown for up to {LONGEST_DISPLAY} tokens; these are {len(tokens)}."
            )
        else:
            _print_second_head(tokens, encoded, len(labels), estimators)
    if options.figure is not None:
        from icl_estimators.reporting.figures.prompt_attention import prompt_attention_figure
        from icl_estimators.reporting.figures.saving import save_figure_as
        from icl_estimators.reporting.prompt_attention import grouped

        save_figure_as(prompt_attention_figure(grouped(found)), options.figure)
        if not options.csv:
            print(f"\n{options.figure}")
    return 0


def attention_on(estimator: Estimator, labels: Sequence[str], tokens: NDArray[np.int64]) -> PromptAttention | None:
    """Return where an estimator looks while it reads a prompt, None if it does not show it.

    Parameters
    ----------
    estimator : Estimator
    labels : sequence of str
        What each token is called.
    tokens : ndarray of int64, shape (T,)

    Raises
    ------
    ContractError
        If the estimator's attention fails, or is something else than weights.
    """
    from icl_estimators.experiments.prompt_attention import layers_of, position_labels
    from icl_estimators.reporting.prompt_attention import PromptAttention

    layers = layers_of(estimator, tokens)
    if layers is None:
        return None
    positions = layers[0].shape[-1]
    return PromptAttention(estimator.name, position_labels(labels, positions), layers, positions > len(labels))


def _write_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([repr(cell) if isinstance(cell, float) else cell for cell in row] for row in rows)


def _print_predictions(
    tokens: list[str], labels: tuple[str, ...], estimators: list[Estimator], rows: list[NDArray[np.float64]]
) -> None:
    from icl_estimators.estimators.counting import Bayes
    from icl_estimators.experiments.assembly import gamma_record
    from icl_estimators.text import gamma_text, number, text_table

    print(f"What comes after the last {tokens[-1]} of {_shown(tokens)}\n")
    table = [[rule.name, *(number(p) for p in row)] for rule, row in zip(estimators, rows, strict=True)]
    print(text_table(["estimator", *labels], table))
    used = gamma_text(gamma_record(estimators)["default_gamma"])
    if used:
        print(f"\n{used}")
    for rule in estimators:
        if isinstance(rule, Bayes):
            print(f"\n{rule.name}: α = {rule.constant:g}")


def _print_attention(found: list[PromptAttention], estimators: list[Estimator]) -> None:
    from icl_estimators.reporting.terminal.prompt_attention import attention_text

    print(f"\n{attention_text(found)}")
    shown = {one.estimator for one in found}
    others = [rule.name for rule in estimators if rule.name not in shown]
    if others:
        print(f"\nNo attention to show: {', '.join(others)}")


def _print_second_head(
    tokens: list[str], encoded: NDArray[np.int64], n_states: int, estimators: list[Estimator]
) -> None:
    """Print where the construction's second head looks from the last token."""
    from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
    from icl_estimators.experiments.prompt_attention import position_labels
    from icl_estimators.reporting.terminal.prompt_attention import row_text

    heads = {rule.beta: rule for rule in estimators if isinstance(rule, Construction)}
    heads |= {rule.head.beta: rule.head for rule in estimators if isinstance(rule, ConstructionSoftmax)}
    heads = heads or {math.inf: Construction(n_states)}  # to compare with
    last = tokens[-1]
    shown = position_labels(tokens, len(tokens) + 1)
    for beta, rule in heads.items():
        scale = "β → ∞" if math.isinf(beta) else f"β = {beta:g}"
        print(f"\nWhere the construction's second head looks from the last {last} ({scale}, {shown[0]}: sentinel)")
        print(row_text(shown, rule.attention(encoded)[1][0, -1].tolist()))
    if last not in tokens[:-1]:
        print(f"{last} does not occur earlier: without a match, attention is a uniform average")


def _shown(tokens: list[str], longest: int = 60) -> str:
    text = "".join(tokens) if all(len(token) == 1 for token in tokens) else " ".join(tokens)
    return text if len(text) <= longest else "…" + text[-longest:]


if __name__ == "__main__":
    sys.exit(main())
