"""The pages for contributors name files that exist, and the picture of the rooms is the code's."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

import icl_estimators
from analysis import architecture

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md"]
OUTPUTS = ("OUT/", "figures/", "tables/", "icl-results/", "report.", "icl_estimators/_data")
"""Paths in a results folder or on a user's disk."""


def paths_of(page: str) -> list[str]:
    """Return the paths in backticks: with a slash, and an ending or a last slash; not `<placeholders>`."""
    text = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    quoted = re.findall(r"`([^`\s<>*=(]+)`", text)
    return [word for word in quoted if re.search(r"/.*\.\w+$|/$", word) and not word.startswith(OUTPUTS)]


@pytest.mark.parametrize("name", PAGES)
def test_paths_in_backticks_exist(name: str) -> None:
    missing = [path for path in paths_of((ROOT / name).read_text("utf-8")) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("name", [page for page in PAGES if page != "CHANGELOG.md"])  # it names what is gone, too
def test_dotted_names_in_backticks_exist(name: str) -> None:
    for dotted in re.findall(r"`(?:python -m )?(icl_estimators(?:\.\w+)+)", (ROOT / name).read_text("utf-8")):
        assert pkgutil.resolve_name(dotted) is not None


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_a_missing_path_is_found() -> None:
    page = "`icl_estimators/gone.py` `docs/` `<rule>/a.py` `1/K` `OUT/blocks/` <!-- `icl_estimators/later.py` -->"
    assert paths_of(page) == ["icl_estimators/gone.py", "docs/"]


def test_the_page_has_the_table_of_the_rooms() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = {
        cells[0].strip("` "): cells[2] for cells in re.findall(r"^\| (`\w+`) \| ([^|]+) \| ([^|]+) \|$", page, re.M)
    }
    assert set(architecture.MAY_USE) <= rows.keys()
    for room, may_use in architecture.MAY_USE.items():
        named = set(re.findall(r"`(\w+)`", rows[room]))
        assert named == may_use or "all rooms above" in rows[room], room


def test_the_picture_shows_every_room_and_no_forbidden_import(tmp_path: Path) -> None:
    assert architecture.ROOMS.keys() == architecture.PLACES.keys() == {*architecture.MAY_USE, "commands"}
    for start, end in architecture.arrows():
        assert end in architecture.MAY_USE.get(start, set(architecture.MAY_USE))
    architecture.draw(tmp_path / "rooms.svg")
    assert (tmp_path / "rooms.svg").read_text("utf-8").count("<svg") == 1


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"version: {icl_estimators.__version__}\n" in citation
    released = re.findall(r"^## \[([\d.]+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert released[0] == (icl_estimators.__version__, re.search(r"date-released: (\S+)", citation)[1])
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["license"] == "MIT"
    assert "license: MIT\n" in citation
