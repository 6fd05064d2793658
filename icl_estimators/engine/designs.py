"""The designs of a study: chains in blocks of work, and where their finished blocks are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from icl_estimators.engine.blocks import blocks
from icl_estimators.engine.pieces import Piece

__all__ = ["Blocks", "Design", "Store", "done_so_far"]

Part = TypeVar("Part")
Shared = TypeVar("Shared")


class Store(Protocol[Part]):
    """Finished blocks of one design, as :class:`icl_estimators.engine.block_store.BlockStore` keeps them."""

    def merged(self) -> tuple[int, Part | None]:
        """Return how many chains from 0 on are merged, and their summary."""
        ...

    def has(self, chains: range) -> bool:
        """Return whether a block exists."""
        ...

    def load(self, chains: range) -> Part | None:
        """Return a block, or None if it cannot be read."""
        ...

    def save(self, chains: range, part: Part) -> None:
        """Keep a finished block."""
        ...

    def passed(self, chains: range, whole: Part) -> None:
        """Record that `whole` contains a block and all before it."""
        ...


class Blocks(Protocol):
    """Finished blocks of a study, design by design."""

    def design(self, name: str, kind: type[Part]) -> Store[Part]:
        """Return the blocks of one design."""
        ...


@dataclass(frozen=True)
class Design(Generic[Shared]):
    """Chains with sequences each, and what is computed of a block of them.

    Attributes
    ----------
    name : str
    kind : type
        What `work` returns.
    work : callable
        (shared, chains) → the summary of those chains.
    chains, sequences : int
        R chains with S sequences each.
    cells : int
        T·K, probabilities predicted for one sequence.
    """

    name: str
    kind: type[Any]
    work: Callable[[Shared, range], Any]
    chains: int
    sequences: int
    cells: int

    def blocks(self, piece: Piece | None = None) -> list[range]:
        """Return its blocks of work in the order of the chains: all of them, or those of a piece."""
        every = blocks(self.chains, self.sequences, self.cells)
        return list(every) if piece is None else piece.of(every, self.chains)


def done_so_far(designs: Iterable[Design[Any]], kept: Blocks, piece: Piece | None = None) -> dict[str, tuple[int, int]]:
    """Return how many chains are kept and how many the study, or the piece of it, has, by design that has any."""
    found = {}
    for design in designs:
        tasks = design.blocks(piece)
        if not tasks:
            continue
        store = kept.design(design.name, design.kind)
        merged = store.merged()[0]
        done = merged + sum(len(task) for task in tasks if task.start >= merged and store.has(task))
        found[design.name] = done, sum(map(len, tasks))
    return found
