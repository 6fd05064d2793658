"""Read a prompt that a person wrote: ABACABADA, or labels with separators; ^ in front is a sentinel."""

from __future__ import annotations

from collections.abc import Sequence

from icl_estimators.validation import InputError

__all__ = ["SENTINEL", "begins_with_sentinel", "read_prompt"]

SENTINEL = "^"
"""What stands before a prompt where the first token has a predecessor that is no state."""


def read_prompt(prompt: str, order: str | None = None) -> tuple[list[str], tuple[str, ...]]:
    """Split a prompt into labels and list the states.

    Parameters
    ----------
    prompt : str
        Labels separated by commas, semicolons, tabs or white space, or one character for each label. A prompt that is
        one word is one label if `order` has it. A ^ in front is the sentinel and no token, unless a state of `order`
        begins with ^.
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
        no others, or has a state that `order` lacks; if it begins with ^ and has another, or nothing else; or if
        `order` has an empty or repeated label.

    Examples
    --------
    >>> read_prompt("ABA")
    (['A', 'B', 'A'], ('A', 'B'))
    >>> read_prompt("^ABA")
    (['A', 'B', 'A'], ('A', 'B'))
    """
    ordered = None if order is None else tuple(_labels(order, f"--order {order!r}"))
    if ordered is not None and (not ordered or len(set(ordered)) < len(ordered)):
        raise InputError(f"--order {order!r} has an empty or repeated label: name each state once")
    word = prompt.strip()
    if begins_with_sentinel(word, ordered or ()):
        tokens = _after_sentinel(word, ordered or ())
    else:
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


def begins_with_sentinel(prompt: str, states: Sequence[str]) -> bool:
    """Say whether a prompt begins with the sentinel: with ^, and no state begins with ^.

    Examples
    --------
    >>> begins_with_sentinel("^ABA", "AB"), begins_with_sentinel("^A^", "^A")
    (True, False)
    """
    word = prompt.strip()
    return word.startswith(SENTINEL) and not any(state.startswith(SENTINEL) for state in states)


def _after_sentinel(word: str, states: Sequence[str]) -> list[str]:
    """Return the labels of a prompt without the sentinel in front."""
    rest = word[1:].strip()
    if not rest:
        raise InputError(
            "the prompt is the sentinel alone, and nothing predicts the first token: give a token, as in ^A"
        )
    if SENTINEL in rest:
        raise InputError(
            f"the prompt {word!r} begins with ^, the sentinel, and has another ^: leave the first out, or make ^ a "
            "state with --order, as in --order ^,A,B"
        )
    if rest in states:
        return [rest]
    labels = _labels(word, f"the prompt {word!r}")
    first = labels[0].removeprefix(SENTINEL)
    return [*([first] if first else []), *labels[1:]]


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
