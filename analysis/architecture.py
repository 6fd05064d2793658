"""Draw the rooms of the package and the imports between them: ``python -m analysis.architecture``.

The picture is measured from the code's own imports (grimp), so that it cannot say more than the code does. It is
written to ``docs/architecture.svg``. Needs the extra ``test``.
"""

from __future__ import annotations

from pathlib import Path

import grimp
import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

PACKAGE = "icl_estimators"
ROOMS = {
    "sources": "draw sequences\nand know their law",
    "transformer": "the trained model\nand its training",
    "estimators": "one interface,\none registry",
    "inference": "generic statistics\non arrays",
    "pseudo_counts": "effective\nsmoothing",
    "engine": "runs a study,\nkeeps its folder",
    "experiments": "what is measured",
    "reporting": "text, figures,\nreports",
    "commands": "evaluate, exact,\npredict, …",
}
"""Rooms, from the first to the last, and what is in each."""

PLACES = {
    "sources": (0, 4),
    "transformer": (0, 3),
    "estimators": (0, 2),
    "inference": (1.5, 4),
    "pseudo_counts": (1.5, 3),
    "engine": (2.7, 3),
    "experiments": (0.75, 1),
    "reporting": (2.7, 1),
    "commands": (1.5, 0),
}
_WIDTH, _HEIGHT = 0.95, 0.52


def room_of(module: str, rooms: set[str]) -> str | None:
    """Return the room of a module; "commands" for the modules of the top floor, None for those every room may use."""
    parts = module.split(".")
    if len(parts) == 1:
        return None
    if parts[1] in rooms:
        return parts[1]
    source = Path(__file__).resolve().parents[1] / PACKAGE / f"{parts[1]}.py"
    return "commands" if '\nif __name__ == "__main__":' in source.read_text(encoding="utf-8") else None


def arrows() -> dict[tuple[str, str], int]:
    """Return how many imports lead from one room into another."""
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    rooms = set(ROOMS) - {"commands"}
    found: dict[tuple[str, str], int] = {}
    for module in sorted(graph.modules):
        for used in sorted(graph.find_modules_directly_imported_by(module)):
            pair = room_of(module, rooms), room_of(used, rooms)
            if None not in pair and pair[0] != pair[1]:
                found[pair] = found.get(pair, 0) + 1  # type: ignore[index,arg-type]
    return found


def draw(path: Path) -> None:
    """Write the picture."""
    figure, axes = plt.subplots(figsize=(9.2, 6.4))
    axes.set_axis_off()
    axes.set_xlim(-0.65, 3.35)
    axes.set_ylim(-0.45, 4.45)
    for (start, end), count in sorted(arrows().items()):
        (x0, y0), (x1, y1) = PLACES[start], PLACES[end]
        axes.add_patch(
            FancyArrowPatch(
                (x0, y0),
                (x1, y1),
                arrowstyle="-|>",
                mutation_scale=11,
                shrinkA=34,
                shrinkB=34,
                linewidth=0.6 + min(count, 30) / 12,
                color="#0072B2",
                alpha=0.55,
                connectionstyle="arc3,rad=0.06",
                zorder=1,
            )
        )
    for room, text in ROOMS.items():
        x, y = PLACES[room]
        axes.add_patch(
            FancyBboxPatch(
                (x - _WIDTH / 2, y - _HEIGHT / 2),
                _WIDTH,
                _HEIGHT,
                boxstyle="round,pad=0.02",
                facecolor="#F4F6F8",
                edgecolor="#333333",
                linewidth=0.8,
                zorder=2,
            )
        )
        axes.text(x, y + 0.13, room, ha="center", va="center", weight="bold", fontsize=10, zorder=3)
        axes.text(x, y - 0.1, text, ha="center", va="center", fontsize=8, zorder=3)
    with mpl.rc_context({"svg.hashsalt": PACKAGE}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[1] / "docs" / "architecture.svg"
    target.parent.mkdir(exist_ok=True)
    draw(target)
    print(target.relative_to(Path.cwd()) if target.is_relative_to(Path.cwd()) else target)
