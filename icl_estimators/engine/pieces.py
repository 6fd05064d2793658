"""A study in pieces: each piece computes some blocks of every design, and all pieces together are the study."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from icl_estimators.engine.same_study import differences
from icl_estimators.provenance import THERE
from icl_estimators.reading import PIECE, PIECE_FILE
from icl_estimators.schemas import SCHEMAS
from icl_estimators.validation import InputError

__all__ = ["FinishedPiece", "Piece", "check_one_study", "check_piece_folder", "check_whole", "read_piece"]


@dataclass(frozen=True)
class Piece:
    """Chains `start` … `stop` − 1 of a study's `total`, and the same share of its other designs.

    A block belongs to the piece that holds its first chain. Where a design has R′ chains and not `total`, chain r of it
    counts as chain r · `total` / R′. So every block of every design is in exactly one piece, wherever the pieces are
    cut, and no block is cut.

    Attributes
    ----------
    start, stop, total : int
        0 ≤ `start` < `stop` ≤ `total`.

    Raises
    ------
    InputError
        If these are not in that order.
    """

    start: int
    stop: int
    total: int

    def __post_init__(self) -> None:
        if self.start >= self.total:
            raise InputError(
                f"--chains-from {self.start} leaves none of {self.total} chains: --chains says how many the whole "
                "study has, and --chains-from and --chains-to which of them this piece does"
            )
        if self.stop > self.total:
            raise InputError(
                f"--chains-to {self.stop} is beyond the {self.total} chains of the study: --chains says how many the "
                "whole study has"
            )
        if not 0 <= self.start < self.stop:
            raise InputError(f"--chains-from {self.start} must be below --chains-to {self.stop}")

    def __str__(self) -> str:
        """Return the chains in words.

        Examples
        --------
        >>> str(Piece(0, 1000, 2000))
        'chains 0 to 999'
        """
        return f"chains {self.start:,} to {self.stop - 1:,}"

    def of(self, blocks: Iterable[range], chains: int) -> list[range]:
        """Return which blocks of a design of so many chains belong to this piece.

        Examples
        --------
        >>> Piece(100, 200, 200).of([range(0, 20), range(20, 40), range(40, 50)], 50)
        [range(40, 50)]
        """
        first, end = self.start * chains, self.stop * chains
        return [block for block in blocks if first <= block.start * self.total < end]

    def record(self) -> dict[str, int]:
        """Return the piece as plain values, under the names of the flags."""
        return {"chains_from": self.start, "chains_to": self.stop}


@dataclass(frozen=True)
class FinishedPiece:
    """A piece that was computed.

    Attributes
    ----------
    folder : Path
    piece : Piece
    run : dict
        Its record, piece.json.
    """

    folder: Path
    piece: Piece
    run: dict[str, Any]

    @property
    def decisive(self) -> dict[str, Any]:
        """What decides the numbers of its study: options and identity together."""
        return {**self.run["options"], **self.run["identity"]}


def read_piece(folder: Path) -> FinishedPiece:
    """Return a finished piece.

    Raises
    ------
    InputError
        If there is no such folder, it holds no piece, the piece is not finished, or its record cannot be read.
    """
    path = folder / PIECE_FILE
    if not folder.is_dir():
        raise InputError(f"no such folder: {folder}")
    if not path.is_file():
        if (folder / "blocks" / "study.json").is_file():
            raise InputError(f"{folder} is not finished: continue its run with --resume")
        raise InputError(f"{folder} holds no piece of a study: make one with evaluate --chains-from A --chains-to B")
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        if run["kind"] != PIECE:
            raise ValueError(f"its kind is {run['kind']!r}")
        for key in ("options", "identity", "flags"):
            if not isinstance(run[key], dict):
                raise TypeError(f"{key} is not an object")
        piece = Piece(int(run["chains_from"]), int(run["chains_to"]), int(run["options"]["chains"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{path} is not the record of a piece ({type(error).__name__}: {error})") from None
    return FinishedPiece(folder, piece, run)


def check_piece_folder(folder: Path, piece: Piece, decisive: dict[str, Any], *, force: bool = False) -> bool:
    """Check that a piece may be written to a folder; return whether it is there already, finished.

    Parameters
    ----------
    folder : Path
    piece : Piece
    decisive : dict
        What decides the numbers of its study: options and identity together.
    force : bool
        Overwrite another piece.

    Raises
    ------
    InputError
        If the folder holds tables of a study, or another finished piece and `force` is false.
    """
    tables = [name for name in ("run.json", *(f"{name}.csv" for name in SCHEMAS)) if (folder / name).exists()]
    if tables:
        raise InputError(
            f"{folder} holds {tables[0]} of a study: a piece has no tables and needs a folder of its own, so name "
            "another with --out"
        )
    if force or not (folder / PIECE_FILE).exists():
        return False
    earlier = read_piece(folder)
    now = json.loads(json.dumps({**decisive, **piece.record()}))
    differs = differences({**earlier.decisive, **earlier.piece.record()}, now, THERE)
    if differs:
        more = f"; and {len(differs) - 3} more" if len(differs) > 3 else ""
        raise InputError(
            f"{folder} holds another piece ({'; '.join(differs[:3])}{more}): name another folder with --out, or "
            "overwrite it with --force"
        )
    return True


def check_one_study(pieces: Sequence[FinishedPiece]) -> None:
    """Check that pieces are of one study.

    Raises
    ------
    InputError
        If they are not; what differs is named.
    """
    first = pieces[0]
    for other in pieces[1:]:
        there, here = (str(piece.folder).replace("{", "{{").replace("}", "}}") for piece in (first, other))
        differs = differences(first.decisive, other.decisive, f"{{}} is {{}} in {there} and {{}} in {here}")
        if differs:
            more = f"; and {len(differs) - 3} more" if len(differs) > 3 else ""
            raise InputError(f"these are pieces of different studies: {'; '.join(differs[:3])}{more}")


def check_whole(pieces: Sequence[FinishedPiece]) -> list[FinishedPiece]:
    """Check that pieces hold every chain of their study once; return them in the order of their chains.

    Raises
    ------
    InputError
        If chains are in two pieces or in none; they are named.
    """
    ordered = sorted(pieces, key=lambda found: (found.piece.start, found.piece.stop))
    for one, other in pairwise(ordered):
        if other.piece.start < one.piece.stop:
            last = min(one.piece.stop, other.piece.stop) - 1
            raise InputError(
                f"{_spelled(other.piece.start, last)} in both {one.folder} and {other.folder}: give pieces that do not "
                "overlap"
            )
    ends = [0, *(found.piece.stop for found in ordered)]
    starts = [*(found.piece.start for found in ordered), ordered[0].piece.total]
    gaps = [(end, start) for end, start in zip(ends, starts, strict=True) if end < start]
    if gaps:
        which = ", ".join(f"{first} to {start - 1}" for first, start in gaps)
        flags = " and ".join(f"--chains-from {first} --chains-to {start}" for first, start in gaps)
        raise InputError(f"chains {which} of {ordered[0].piece.total} are missing: run evaluate with {flags}")
    return ordered


def _spelled(first: int, last: int) -> str:
    return f"chain {first} is" if first == last else f"chains {first} to {last} are"
