"""Notes: one text a code, made in one place."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import pytest

import icl_estimators
from icl_estimators import compare
from icl_estimators.api import effective_smoothing
from icl_estimators.notes import Code, Note, fields_of, join

PACKAGE = Path(icl_estimators.__path__[0])
ROOT = PACKAGE.parent


def test_a_note_keeps_its_code_and_parameters() -> None:
    note = Note(Code.INFINITE_IN_CHAINS, count=1200, total=2000)
    assert note == "infinite in 1,200 of 2,000 chains"
    assert note.parts == ((Code.INFINITE_IN_CHAINS, {"count": 1200, "total": 2000}),)


def test_notes_in_a_tuple_are_listed() -> None:
    sides = tuple(Note(Code.SIDE, name=name, why="undefined") for name in ("a", "b"))
    assert Note(Code.NO_DIFFERENCE, sides=sides) == "no difference: a is undefined, b is undefined"


def test_joined_notes_are_one_with_all_parts_each_once_and_without_empty_ones() -> None:
    first, second = Note(Code.IDENTICAL), Note(Code.AT_THE_BOUNDARY, value=0.0)
    both = join(first, "", second, first)
    assert both == f"{first}; {second}"
    assert isinstance(both, Note)
    assert [code for code, _ in both.parts] == [Code.IDENTICAL, Code.AT_THE_BOUNDARY]
    assert join("", first) is first
    assert join() == ""


def test_a_note_travels_to_another_process() -> None:
    note = join(Note(Code.IDENTICAL), Note(Code.AT_THE_BOUNDARY, value=0.0))
    there = pickle.loads(pickle.dumps(note))
    assert isinstance(there, Note)
    assert isinstance(note, Note)
    assert (there, there.parts) == (note, note.parts)


@pytest.mark.parametrize("parameters", [{}, {"value": 1.0, "more": 2}])
def test_other_parameters_than_the_template_names_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(TypeError, match=r"AT_THE_BOUNDARY takes \['value'\]"):
        Note(Code.AT_THE_BOUNDARY, **parameters)


def calls() -> dict[str, list[set[str]]]:
    """Return the parameters that each code is given, wherever it is spelled out."""
    found: dict[str, list[set[str]]] = {}
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "analysis").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Note" and node.args:
                code = node.args[0]
                if isinstance(code, ast.Attribute):
                    found.setdefault(code.attr, []).append({str(word.arg) for word in node.keywords})
    return found


@pytest.mark.slow
def test_every_code_is_given_what_its_template_names() -> None:
    found = calls()
    assert len(found) > 60
    for name, given in found.items():
        assert all(parameters == fields_of(Code[name]) for parameters in given), name


def test_every_code_is_used() -> None:
    text = "".join(path.read_text("utf-8") for path in (*PACKAGE.rglob("*.py"), *(ROOT / "analysis").glob("*.py")))
    assert [code.name for code in Code if f"Code.{code.name}" not in text] == []


@pytest.mark.parametrize("start", ["uniform", "stationary"])
def test_every_note_of_a_study_is_made_here(start: str) -> None:
    found = compare(
        ["transformer", "bigram", "add-one", "bayes"],
        chains=12,
        sequences_per_chain=2,
        length=5,
        decomposition_chains=4,
        decomposition_sequences=3,
        start=start,
    )
    changed = effective_smoothing(
        ["transformer", "uniform"], families=["affine"], chains=12, sequences_per_chain=2, length=5, start=start
    )
    tables = [*found.tables.values(), *changed.tables.values()]
    cells = [row[table.columns.index("note")] for table in tables if "note" in table.columns for row in table.rows]
    assert len(cells) > 500
    assert [cell for cell in cells if cell and not isinstance(cell, Note)] == []
    assert any(cells)
