"""Files: written completely or not at all, tested for write access before the work, identified by their digest."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from icl_estimators.validation import InputError

__all__ = ["require_writable", "sha256", "write_whole"]


def require_writable(folder: Path) -> None:
    """Make `folder` and check that a file can be written there, before any work is done.

    Raises
    ------
    InputError
        If the folder cannot be made or written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except FileExistsError:
        raise InputError(f"{folder} is a file, not a folder: name another with --out") from None
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror}; name another with --out") from None


@contextmanager
def write_whole(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; the file replaces `path` when the block ends without an error.

    So a file is complete or absent, even if the process is killed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
