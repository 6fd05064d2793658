"""Finished blocks of a study on disk, so that a run that was stopped can continue.

In ``OUT/blocks/<design>/`` each finished block is one ``.npz`` file of plain arrays (nothing is pickled). It is written
completely or not at all, and is named by its chains. It contains the digest of its study; a block of another study
counts as missing. From time to time, consecutive blocks from chain 0 on are merged into one file
``merged-<chains>.npz``, so that the folder does not grow with the study. ``OUT/blocks/study.json`` describes the study
that the blocks belong to.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from icl_estimators.engine.folder import write_json
from icl_estimators.engine.same_study import differences, digest
from icl_estimators.files import write_whole
from icl_estimators.inference.trees import from_arrays, to_arrays
from icl_estimators.reading import PIECE_FILE
from icl_estimators.validation import InputError

__all__ = ["BlockStore", "StudyBlocks"]

_BLOCK = re.compile(r"chains-(\d+)-(\d+)\.npz")
_MERGED = re.compile(r"merged-(\d+)\.npz")
_COMPACT_EVERY = 8


Part = TypeVar("Part")


class StudyBlocks:
    """The folder of a study's blocks.

    Parameters
    ----------
    out : Path
        The study's output folder.
    identity : dict
        Everything that decides the numbers: run.json's options and identity together.
    resume : bool
        Continue with the blocks that are there.
    force : bool
        Remove the blocks that are there.
    piece : dict, optional
        Which part of the study the blocks are. Blocks do not depend on it, but a folder holds one piece.

    Raises
    ------
    InputError
        If `resume` is true and the blocks there are another study's (what differs is named), or blocks are there and
        neither `resume` nor `force` is true.
    """

    def __init__(
        self,
        out: Path,
        identity: dict[str, Any],
        *,
        resume: bool = False,
        force: bool = False,
        piece: dict[str, int] | None = None,
    ) -> None:
        self.folder = out / "blocks"
        record = self.folder / "study.json"
        plain = json.loads(json.dumps(identity))
        self._digest = digest(plain)
        plain |= piece or {}
        if not force and next(self.folder.glob("*/*.npz"), None) is not None:
            if not resume:
                raise InputError(
                    f"{self.folder} holds finished blocks of a run that was stopped: continue with --resume, or start "
                    "again with --force"
                )
            self._check_same(record, plain)
            return
        (out / PIECE_FILE).unlink(missing_ok=True)  # it says that the blocks there are finished
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write_json(record, plain)

    def _check_same(self, record: Path, identity: dict[str, Any]) -> None:
        try:
            earlier = json.loads(record.read_text(encoding="utf-8"))
            if not isinstance(earlier, dict):
                raise ValueError
        except (OSError, ValueError):
            raise InputError(f"{record} is not readable: start again with --force") from None
        differs = differences(earlier, identity)
        if differs:
            raise InputError(
                f"{self.folder} holds blocks of another study: {'; '.join(differs)}; restore what differs, or start "
                "again with --force"
            )

    def design(self, name: str, kind: type[Part]) -> BlockStore[Part]:
        """Return the store of one design's blocks."""
        return BlockStore(self.folder / name, kind, self._digest)


class BlockStore(Generic[Part]):
    """Finished blocks of one design.

    Parameters
    ----------
    folder : Path
    kind : type
        RiskMoments or DecompositionMoments.
    study : str
        The study's digest.
    create : bool
        Whether the folder is created if it does not exist.
    """

    def __init__(self, folder: Path, kind: type[Part], study: str, *, create: bool = True) -> None:
        self.folder, self.kind, self._study = folder, kind, study
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        self._since_compaction: list[Path] = []

    def merged(self) -> tuple[int, Part | None]:
        """Return how many chains from 0 on are merged, and their summary; (0, None) if there are none."""
        counts = [int(found[1]) for path in self.folder.iterdir() if (found := _MERGED.fullmatch(path.name))]
        for count in sorted(counts, reverse=True):
            part = self._read(self.folder / f"merged-{count}.npz")
            if part is not None:
                return count, part
        return 0, None

    def has(self, chains: range) -> bool:
        """Return whether a block exists."""
        return self._path(chains).exists()

    def load(self, chains: range) -> Part | None:
        """Return a block, or None if it does not exist, cannot be read, or belongs to another study."""
        return self._read(self._path(chains))

    def save(self, chains: range, part: Part) -> None:
        """Keep a finished block."""
        self._write(self._path(chains), part)

    def passed(self, chains: range, whole: Part) -> None:
        """Record that `whole` contains a block and all before it; from time to time, store it instead of them."""
        self._since_compaction.append(self._path(chains))
        if len(self._since_compaction) < _COMPACT_EVERY:
            return
        older = [path for path in self.folder.iterdir() if _MERGED.fullmatch(path.name)]
        self._write(self.folder / f"merged-{chains.stop}.npz", whole)
        for path in (*older, *self._since_compaction):
            path.unlink(missing_ok=True)
        self._since_compaction.clear()

    def _path(self, chains: range) -> Path:
        return self.folder / f"chains-{chains.start:08d}-{chains.stop:08d}.npz"

    def _write(self, path: Path, part: Part) -> None:
        with write_whole(path) as temporary, open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, study=np.array(self._study), **to_arrays(part))

    def _read(self, path: Path) -> Part | None:
        if not path.exists():
            return None
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                return from_arrays(self.kind, arrays) if str(arrays["study"]) == self._study else None
        except (OSError, ValueError, KeyError, zipfile.BadZipFile, InputError):
            return None  # a block that cannot be read is computed again
