"""What a person says about a file of sequences, checked as a whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict

from icl_estimators.validation import InputError

__all__ = ["MISSING_ACTIONS", "ReadingKeywords", "ReadingOptions"]

MISSING_ACTIONS = ("split", "error")
"""What may be done about a missing value: it ends a piece of its sequence, or it is refused."""


class ReadingKeywords(TypedDict, total=False):
    """The fields of :class:`ReadingOptions`, as keywords."""

    delimiter: str | None
    characters: bool
    header: bool | None
    state_column: str | None
    id_column: str | None
    order_column: str | None
    missing: tuple[str, ...]
    missing_action: str
    states_order: tuple[str, ...] | None
    dashes: str


@dataclass(frozen=True, kw_only=True)
class ReadingOptions:
    """How sequences are to be read; see :func:`icl_estimators.observed` for each option.

    Attributes
    ----------
    delimiter, characters, header, state_column, id_column, order_column, missing, missing_action, states_order
        As in :func:`icl_estimators.observed`. Columns, missing values and states are text here.
    dashes : str
        ``--`` if the options are flags; messages then use the flags' names.

    Raises
    ------
    InputError
        If options contradict each other, or one is no value of its kind.
    """

    delimiter: str | None = None
    characters: bool = False
    header: bool | None = None
    state_column: str | None = None
    id_column: str | None = None
    order_column: str | None = None
    missing: tuple[str, ...] = ()
    missing_action: str = "split"
    states_order: tuple[str, ...] | None = None
    dashes: str = ""

    def __post_init__(self) -> None:
        if self.delimiter is not None and (not self.delimiter or re.search(r"[\r\n]", self.delimiter)):
            raise InputError(
                f"the delimiter {self.delimiter!r} cannot separate labels: give a character such as , or |"
            )
        for name in ("delimiter", "header", "state_column", "id_column", "order_column"):
            if self.characters and getattr(self, name) is not None:
                raise InputError(
                    f"each character is a label with {self.flag('characters')}, so {self.flag(name)} does not apply: "
                    "give one of them"
                )
        if self.order_column is not None and self.state_column is None:
            raise InputError(
                f"{self.flag('order_column')} orders the rows of a table: give {self.flag('state_column')} too, or "
                "leave it out"
            )
        used = [c for c in (self.state_column, self.id_column, self.order_column) if c is not None]
        if len(set(used)) < len(used):
            raise InputError(f"two of the columns {', '.join(used)} are the same: give each column one role")
        if self.missing_action not in MISSING_ACTIONS:
            raise InputError(
                f"{self.flag('missing_action')} must be {' or '.join(MISSING_ACTIONS)}, not {self.missing_action!r}"
            )
        self._check_states()
        if self.characters:
            self.check_characters()

    def _check_states(self) -> None:
        states, named = self.states_order, self.flag("states_order")
        if states is None:
            return
        if not states or not all(states) or len(set(states)) < len(states):
            raise InputError(f"{named} is empty or has an empty or repeated label: name each state once, as in A,B,C")
        both = next((label for label in states if label in self.missing), None)
        if both is not None:
            raise InputError(f"{both!r} is both a state in {named} and in {self.flag('missing')}: leave it out of one")

    def check_characters(self) -> None:
        """Refuse states and missing values that no character can be.

        Raises
        ------
        InputError
            If one of them is not one character.
        """
        for name in ("missing", "states_order"):
            odd = next((label for label in getattr(self, name) or () if len(label) != 1), None)
            if odd is not None:
                raise InputError(
                    f"{self.flag(name)} has {odd!r}, but each character is a label: give single characters"
                )

    def flag(self, name: str) -> str:
        """Return the name of an option as the person writes it.

        Examples
        --------
        >>> ReadingOptions().flag("id_column"), ReadingOptions(dashes="--").flag("id_column")
        ('id_column', '--id-column')
        """
        return self.dashes + name.replace("_", "-") if self.dashes else name

    @property
    def with_header(self) -> str:
        """How to say that the first line holds names of columns."""
        return "--header" if self.dashes else "header=True"

    @property
    def without_header(self) -> str:
        """How to say that the first line is data."""
        return "--no-header" if self.dashes else "header=False"

    @property
    def with_characters(self) -> str:
        """How to say that each character is a label."""
        return "--characters" if self.dashes else "characters=True"

    @property
    def with_empty_missing(self) -> str:
        """How to say that an empty cell is a missing value."""
        return "--missing=" if self.dashes else 'missing=[""]'
