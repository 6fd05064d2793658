"""What an attention head can be replaced by; here, so that no torch is needed to name it."""

from __future__ import annotations

from typing import Literal, get_args

from icl_estimators.validation import InputError

__all__ = ["Head", "require_head"]

Head = Literal["previous", "match", "uniform", "zero"]
"""What a head is replaced by. "previous": it looks at the previous token and nowhere else (the first position at
itself). "match": evenly at the positions whose predecessor is the current token; where there are none it stays as it
was. "uniform": evenly at all positions up to its own. "zero": it adds nothing."""


def require_head(head: object, name: str) -> None:
    """Refuse what no head can be replaced by.

    Parameters
    ----------
    head : object
        None: the head stays.
    name : str
        What the message calls it.

    Raises
    ------
    InputError
        If `head` is neither None nor one of :data:`Head`.

    Examples
    --------
    >>> require_head("uniform", "layer1")
    >>> require_head("even", "layer1")
    Traceback (most recent call last):
    icl_estimators.validation.InputError: layer1 must be one of previous, match, uniform, zero, not 'even'
    """
    if head is not None and head not in get_args(Head):
        raise InputError(f"{name} must be one of {', '.join(get_args(Head))}, not {head!r}")
