"""The blocks of finished pieces, read where they are: nothing is computed and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from icl_estimators.engine.block_store import BlockStore
from icl_estimators.engine.pieces import FinishedPiece
from icl_estimators.engine.same_study import digest
from icl_estimators.validation import InputError

__all__ = ["GatheredBlocks"]

Part = TypeVar("Part")


class GatheredBlocks:
    """Every block of a study, from the folders of its pieces.

    Parameters
    ----------
    pieces : sequence of FinishedPiece
        Of one study; together they are the whole.
    """

    def __init__(self, pieces: Sequence[FinishedPiece]) -> None:
        self._pieces = list(pieces)

    def design(self, name: str, kind: type[Part]) -> _Gathered[Part]:
        """Return the blocks of one design."""
        return _Gathered(self._pieces, name, kind)


class _Gathered(Generic[Part]):
    def __init__(self, pieces: Sequence[FinishedPiece], name: str, kind: type[Part]) -> None:
        self._stores = [
            (piece.folder, BlockStore(piece.folder / "blocks" / name, kind, digest(piece.decisive), create=False))
            for piece in pieces
        ]
        self._name = name

    def merged(self) -> tuple[int, Part | None]:
        """Pieces keep every block on its own."""
        return 0, None

    def has(self, chains: range) -> bool:
        """Every block is there; :meth:`load` says so if one is not."""
        return True

    def load(self, chains: range) -> Part | None:
        """Return a block.

        Raises
        ------
        InputError
            If no piece has it, or it cannot be read.
        """
        for _, store in self._stores:
            part = store.load(chains)
            if part is not None:
                return part
        raise InputError(
            f"the block of chains {chains.start} to {chains.stop - 1} of the design {self._name} is missing or cannot "
            f"be read{self._where(chains)}: compute that piece again, with --force"
        )

    def _where(self, chains: range) -> str:
        found: list[Path] = [folder for folder, store in self._stores if store.has(chains)]
        return f" in {found[0]}" if found else ""

    def save(self, chains: range, part: Any) -> None:
        """Nothing is computed, so that there is nothing to keep."""

    def passed(self, chains: range, whole: Any) -> None:
        """The pieces stay as they are."""
