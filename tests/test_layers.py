"""The rooms of the package: data flows one way, and no two modules import each other in a circle."""

from __future__ import annotations

from pathlib import Path

import grimp
import networkx as nx
import pytest

import icl_estimators
from analysis.architecture import MAY_USE

FOLDER = Path(icl_estimators.__path__[0])
TOP_FLOOR = {path.stem for path in FOLDER.glob("*.py") if '\nif __name__ == "__main__":' in path.read_text("utf-8")} | {
    "options",
    "data_options",
    "python_commands",
    "grids",
    "api",
}
"""The commands, what they share and their Python face: they may use everything, and no room may use them."""


@pytest.fixture(scope="module")
def imports() -> nx.DiGraph:
    """Return which module imports which, imports inside functions included."""
    found = grimp.build_graph("icl_estimators", exclude_type_checking_imports=True, cache_dir=None)
    graph = nx.DiGraph()
    graph.add_nodes_from(found.modules)
    graph.add_edges_from(
        (module, used) for module in found.modules for used in found.find_modules_directly_imported_by(module)
    )
    return graph


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_the_graph_holds_the_whole_package(imports: nx.DiGraph) -> None:
    files = {path.relative_to(FOLDER.parent) for path in FOLDER.rglob("*.py")}
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files}
    assert names == set(imports.nodes)


def test_no_modules_import_each_other_in_a_circle(imports: nx.DiGraph) -> None:
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


def test_every_folder_is_a_room_of_the_table() -> None:
    folders = {path.parent.name for path in FOLDER.glob("*/*.py")}
    assert folders == set(MAY_USE)


@pytest.mark.parametrize("name", MAY_USE)
def test_a_room_imports_only_from_rooms_above_it(imports: nx.DiGraph, name: str) -> None:
    shared = {path.stem for path in FOLDER.glob("*.py")} - TOP_FLOOR - {"__init__"}
    for module, used in imports.edges:
        if room(module) == name:
            assert room(used) in {name, *MAY_USE[name], *shared}, f"{module} imports {used}"


def test_the_modules_that_every_room_may_use_import_no_room(imports: nx.DiGraph) -> None:
    shared = {path.stem for path in FOLDER.glob("*.py")} - TOP_FLOOR - {"__init__"}
    for module, used in imports.edges:
        if room(module) in shared:
            assert room(used) not in MAY_USE, f"{module} imports {used}"


def test_a_room_says_what_it_is_for_and_what_it_offers() -> None:
    for name in MAY_USE:
        source = (FOLDER / name / "__init__.py").read_text("utf-8")
        assert source.startswith('"""'), name
        assert "__all__" in source, name
