"""What comes after a prompt, according to each estimator: ``python -m icl_estimators.predict ABACABADA``."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence

from icl_estimators.options import Parser, command, estimator_parent, make_estimators
from icl_estimators.validation import InputError

__all__ = ["main", "read_prompt"]

LONGEST_DISPLAY = 200
"""The longest prompt whose attention is shown: the matrices have as many rows as it has tokens."""

_CHECKED = 4096  # tokens on which estimators are checked: more would cost more than the predictions


def _parser() -> Parser:
    parser = Parser(
        prog="python -m icl_estimators.predict",
        description="The next-token distribution after a prompt, according to each estimator, and where the "
        "induction head looks.",
        epilog="example: python -m icl_estimators.predict ABACABADA",
        parents=[estimator_parent()],
    )
    parser.add_argument(
        "prompt",
        help="one character for each token, or labels separated by commas, semicolons or spaces: 'sun,rain,sun' "
        "(after -- if it starts with a dash)",
    )
    parser.add_argument(
        "--order",
        metavar="A,B,C",
        help="the states in order, including any that the prompt lacks (default: those in the prompt, sorted)",
    )
    parser.add_argument("--csv", action="store_true", help="print estimator,token,probability at full precision")
    return parser


def read_prompt(prompt: str, order: str | None = None) -> tuple[list[str], tuple[str, ...]]:
    """Split a prompt into labels and list the states.

    Parameters
    ----------
    prompt : str
        Labels separated by commas, semicolons, tabs or white space, or one character for each label. A prompt that is
        one word is one label if `order` has it.
    order : str, optional
        The states, written in the same way.

    Returns
    -------
    tokens : list of str
    labels : tuple of str
        The K ≥ 2 states.

    Raises
    ------
    InputError
        If the prompt is empty, has an empty or quoted label or two separators, has only one state and `order` names
        no others, or has a state that `order` lacks; or if `order` has an empty or repeated label.

    Examples
    --------
    >>> read_prompt("ABA")
    (['A', 'B', 'A'], ('A', 'B'))
    """
    ordered = None if order is None else tuple(_labels(order, f"--order {order!r}"))
    if ordered is not None and (not ordered or len(set(ordered)) < len(ordered)):
        raise InputError(f"--order {order!r} has an empty or repeated label: name each state once")
    word = prompt.strip()
    tokens = [word] if ordered is not None and word in ordered else _labels(prompt, f"the prompt {prompt!r}")
    if not tokens:
        raise InputError("the prompt is empty: give at least one token, as in ABACABADA")
    labels = tuple(sorted(set(tokens))) if ordered is None else ordered
    missing = [token for token in dict.fromkeys(tokens) if token not in labels]
    if missing:
        raise InputError(f"the prompt has {missing[0]!r}, which --order {order!r} lacks: add it there")
    if len(labels) < 2:
        raise InputError(f"the prompt has one state, {labels[0]!r}: name the others with --order, as in --order A,B")
    return tokens, labels


def _labels(text: str, place: str) -> list[str]:
    from icl_estimators.sources.observed.labels import find_separator, split_labels

    text = text.strip()
    separator = find_separator(text, place)
    if separator is None:
        return list(text)
    labels = split_labels(text, separator, place)
    for label in labels:
        if len(label.split()) > 1 and set(label.split()) & set(labels):
            raise InputError(f"{place}: {label!r} contains white space: separate all labels in the same way")
    return labels


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Print the predictions; return the exit status."""
    options = _parser().parse_args(argv)
    tokens, labels = read_prompt(options.prompt, options.order)
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
    if options.csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["estimator", "token", "probability"])
        for rule, row in zip(estimators, rows, strict=True):
            writer.writerows([rule.name, label, repr(float(p))] for label, p in zip(labels, row, strict=True))
        return 0
    from icl_estimators.estimators.construction import Construction, ConstructionSoftmax
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
    if len(tokens) > LONGEST_DISPLAY:
        print(f"\nThe construction's attention is shown for up to {LONGEST_DISPLAY} tokens; these are {len(tokens)}.")
        return 0
    heads = {rule.beta: rule for rule in estimators if isinstance(rule, Construction)}
    if not heads or any(isinstance(rule, ConstructionSoftmax) for rule in estimators):
        heads.setdefault(math.inf, Construction(len(labels)))  # of the softmax form too, or to compare with
    last = tokens[-1]
    for beta, rule in heads.items():
        scale = "β → ∞" if math.isinf(beta) else f"β = {beta:g}"
        print(f"\nWhere the construction's second head looks from the last {last} ({scale}, ^: sentinel)")
        _print_attention(["^", *tokens], rule.attention(encoded)[1][0, -1].tolist())
    if last not in tokens[:-1]:
        print(f"{last} does not occur earlier: without a match, attention is a uniform average")
    return 0


def _print_attention(tokens: list[str], weights: list[float], width: int = 76) -> None:
    from icl_estimators.text import columns_of

    cells = ["·" if weight < 1e-6 else f"{weight:.2f}" if weight >= 0.005 else f"{weight:.0e}" for weight in weights]
    column = max(map(columns_of, (*tokens, *cells))) + 2
    per_line = max(1, (width - 9) // column)
    for first in range(0, len(cells), per_line):
        for title, row in (("token    ", tokens), ("weight   ", cells)):
            print(title + "".join(" " * (column - columns_of(cell)) + cell for cell in row[first : first + per_line]))


def _shown(tokens: list[str], longest: int = 60) -> str:
    text = "".join(tokens) if all(len(token) == 1 for token in tokens) else " ".join(tokens)
    return text if len(text) <= longest else "…" + text[-longest:]


if __name__ == "__main__":
    sys.exit(main())
