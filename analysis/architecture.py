"""Draw the rooms of the package and the imports between them: ``python -m analysis.architecture``.

The arrows are measured from the code's own imports (grimp). An arrow that follows from two others is left out. The
picture is written to ``docs/architecture.svg``, or to a path that is given: its ending (.svg, .png, .pdf) is its kind.
Needs the extra ``test``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import grimp
import matplotlib as mpl
import networkx as nx
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PACKAGE = "icl_estimators"
ROOT = Path(__file__).resolve().parents[1]

MAY_USE: dict[str, set[str]] = {
    "sources": set(),
    "transformer": {"sources"},
    "estimators": {"sources", "transformer"},
    "inference": set(),
    "pseudo_counts": {"inference"},
    "engine": {"inference"},
    "experiments": {"sources", "transformer", "estimators", "inference", "pseudo_counts", "engine"},
    "reporting": set(),
}
"""What a room may import besides itself and the modules that every room may use."""

ROOMS = {
    "sources": "draw sequences\nand know their law",
    "transformer": "the trained model\nand its training",
    "estimators": "one interface,\none registry",
    "inference": "generic statistics\non arrays",
    "pseudo_counts": "effective\nsmoothing",
    "engine": "runs a study,\nkeeps its folder",
    "experiments": "what is measured,\ncompare()",
    "reporting": "text, figures,\nreports",
    "commands": "evaluate, exact,\npredict, …",
}
"""Rooms and what is in each; "commands" are the modules that are run with ``python -m``, and what they share."""

PLACES = {
    "sources": (0.0, 4.0),
    "transformer": (0.0, 3.0),
    "estimators": (0.0, 2.0),
    "inference": (2.0, 4.0),
    "pseudo_counts": (1.35, 3.0),
    "engine": (2.65, 3.0),
    "experiments": (1.35, 1.0),
    "reporting": (2.65, 1.0),
    "commands": (2.0, 0.0),
}
_WIDTH, _HEIGHT = 1.06, 0.56


def room_of(module: str) -> str | None:
    """Return the room of a module; "commands" for the modules of the top floor, None for those every room may use."""
    parts = module.split(".")
    if len(parts) == 1:
        return None
    if parts[1] in MAY_USE:
        return parts[1]
    source = ROOT / PACKAGE / f"{parts[1]}.py"
    shared = parts[1] in ("api", "options", "data_options", "python_commands", "grids")
    top = shared or '\nif __name__ == "__main__":' in source.read_text(encoding="utf-8")
    return "commands" if top else None


def arrows() -> list[tuple[str, str]]:
    """Return which room imports which, without what follows from other arrows and what :data:`MAY_USE` forbids."""
    modules = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    found = nx.DiGraph()
    for module in modules.modules:
        for used in modules.find_modules_directly_imported_by(module):
            start, end = room_of(module), room_of(used)
            if start is not None and end is not None and end in MAY_USE.get(start, set(MAY_USE)) - {start}:
                found.add_edge(start, end)
    return sorted(nx.transitive_reduction(found).edges)


def draw(path: Path) -> None:
    """Write the picture."""
    figure = Figure(figsize=(8.0, 6.6))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(-0.7, 3.35)
    axes.set_ylim(-0.85, 4.45)
    boxes = {}
    for room, text in ROOMS.items():
        x, y = PLACES[room]
        corner = (x - _WIDTH / 2, y - _HEIGHT / 2)
        style = {"boxstyle": "round,pad=0.02", "facecolor": "#F4F6F8", "edgecolor": "#333333", "linewidth": 0.9}
        boxes[room] = axes.add_patch(FancyBboxPatch(corner, _WIDTH, _HEIGHT, **style))
        axes.text(x, y + 0.15, room, ha="center", va="center", weight="bold", fontsize=11)
        axes.text(x, y - 0.09, text, ha="center", va="center", fontsize=9.5)
    for start, end in arrows():
        axes.add_patch(
            FancyArrowPatch(
                PLACES[start],
                PLACES[end],
                patchA=boxes[start],
                patchB=boxes[end],
                arrowstyle="-|>",
                mutation_scale=14,
                shrinkA=2,
                shrinkB=2,
                linewidth=1.3,
                color="#0072B2",
            )
        )
    legend = "A → B: room A imports room B. The commands and experiments may import every room that an arrow leads to."
    axes.text(1.325, -0.62, legend, ha="center", va="center", fontsize=8.5, color="#333333")
    with mpl.rc_context({"svg.hashsalt": PACKAGE}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "architecture.svg"
    target.parent.mkdir(exist_ok=True)
    draw(target)
    print(target)
