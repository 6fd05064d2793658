from __future__ import annotations

import pytest

from icl_estimators.sources.observed import ReadingOptions
from icl_estimators.validation import InputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ""}, "the delimiter '' cannot separate labels"),
        ({"characters": True, "header": True}, "with --characters, so --header does not apply: give one of them"),
        ({"characters": True, "state_column": "1"}, "so --state-column does not apply"),
        ({"order_column": "t"}, "--order-column orders the rows of a table: give --state-column too"),
        ({"state_column": "a", "id_column": "a"}, "two of the columns a, a are the same: give each column one role"),
        ({"missing_action": "drop"}, "--missing-action must be split or error, not 'drop'"),
        ({"states_order": ()}, "--states-order is empty or has an empty or repeated label"),
        ({"states_order": ("a", "a")}, "--states-order is empty or has an empty or repeated label"),
        ({"states_order": ("a", "")}, "--states-order is empty or has an empty or repeated label"),
        ({"states_order": ("a", "b"), "missing": ("b",)}, "'b' is both a state in --states-order and in --missing"),
        ({"characters": True, "missing": ("NA",)}, "--missing has 'NA', but each character is a label"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ReadingOptions(dashes="--", **options)
