"""Modules of your own: by name, ``package.module``, or by file, ``folder/model.py``.

A module that was read from a file has a name of its own, made of the file's name and its content, so that it hides no
other module. Worker processes find it again by that name: what is sent to them says where the file is
(:class:`icl_estimators.estimators.identity.Sealed`).
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from icl_estimators.files import sha256
from icl_estimators.validation import InputError

__all__ = ["files_of", "import_own", "is_file", "know_files"]

_files: dict[str, Path] = {}  # by the name of the module that was read from it


class _Finder:
    """Finds the modules that were read from files."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        file = _files.get(name)
        return None if file is None else importlib.util.spec_from_file_location(name, file)


def is_file(head: str) -> bool:
    """Say whether a spec begins with a Python file rather than a module.

    Examples
    --------
    >>> is_file("models/gru.py"), is_file("models.gru")
    (True, False)
    """
    return head.endswith(".py")


def import_own(head: str, spec: str) -> ModuleType | None:
    """Import a module by its name or its file.

    Parameters
    ----------
    head : str
        ``package.module``, or a path that ends in ``.py``. The folder of a file is searched for what it imports, after
        all others.
    spec : str
        What the module is wanted for, for messages.

    Returns
    -------
    module or None
        None if there is no module of this name.

    Raises
    ------
    InputError
        If a file is missing or a folder, or the import fails; with the failure's own message.
    """
    try:
        return _read(Path(head), spec) if is_file(head) else importlib.import_module(head)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        if is_file(head) or (error.name and not f"{head}.".startswith(f"{error.name}.")):
            raise InputError(f"{spec}: importing {head} failed: {error}") from error
        return None
    except (Exception, SystemExit) as error:
        what = " ".join(str(error).split())
        raise InputError(f"{spec}: importing {head} failed: {type(error).__name__}: {what}") from error


def _read(file: Path, spec: str) -> ModuleType:
    if file.is_dir():
        raise InputError(f"{spec}: {file} is a folder: give a Python file, as in model.py:make")
    if not file.is_file():
        raise InputError(f"{spec}: no such file: {file} (give a Python file, as in model.py:make)")
    name = f"{re.sub(r'[^0-9A-Za-z_]', '_', file.stem)}__{sha256(file)[:12]}"
    know_files({name: str(file.absolute())})
    return importlib.import_module(name)


def know_files(files: Mapping[str, str]) -> None:
    """Let modules be imported from files, by name; their folders are searched for what they import."""
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
    for name, path in files.items():
        _files.setdefault(name, Path(path))
        folder = str(Path(path).parent)
        if folder not in sys.path:
            sys.path.append(folder)


def files_of(modules: Sequence[str]) -> dict[str, str]:
    """Return where those of some modules are that were read from files, by name."""
    return {name: str(_files[name]) for name in modules if name in _files}
