"""What determines a study besides its options: the source and state of its estimators, versions, and the processor.

Two runs with the same identity give the same bytes. ``--resume`` continues a run only if its identity is the same, so
that no mean is taken over two rules.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import pickle
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from icl_estimators.estimators.base import Estimator
from icl_estimators.estimators.capabilities import device_of, weights_of
from icl_estimators.estimators.own_modules import files_of, know_files
from icl_estimators.estimators.registry import factory_module
from icl_estimators.files import sha256
from icl_estimators.provenance import environment
from icl_estimators.validation import InputError

__all__ = ["Sealed", "own_sources", "study_identity"]

_PACKAGE = "icl_estimators"
_LIBRARIES = {_PACKAGE, "numpy", "scipy", "torch", "numba", "builtins"}  # known by their versions
_MAIN = {"__main__", "__mp_main__"}  # one module, in a program and in its workers
_DEPTH = 4  # rules that hold rules that hold rules


def study_identity(estimators: Iterable[Estimator]) -> dict[str, Any]:
    """Return what decides the numbers of a study besides its options, as plain values.

    Parameters
    ----------
    estimators : iterable of Estimator
        As they were made, before they are asked for anything but the contract's checks.

    Returns
    -------
    dict
        ``sources``: by estimator, the SHA-256 of each module of your own that it comes from, by name; None for a module
        whose source is not known. ``states``: by estimator, a digest of what the object holds; None if that is not
        known. Estimators of this package that were read from a file have neither: `weights` are known. ``devices``: by
        estimator, where it runs if that is not the CPU. ``versions`` and ``cpu``: see
        :func:`icl_estimators.provenance.environment`.

    Examples
    --------
    >>> from icl_estimators.estimators import get
    >>> sorted(study_identity([get("add-one")]))
    ['cpu', 'devices', 'sources', 'states', 'versions']
    """
    rules = list(estimators)
    sources = {rule.name: own_sources(rule) for rule in rules}
    return {
        "sources": {name: found for name, found in sources.items() if found},
        "states": {rule.name: _state(rule) for rule in rules if not _known_by_weights(rule)},
        "devices": {rule.name: device for rule in rules if (device := device_of(rule))},
        **environment(torch=any(_uses_torch(rule, sources[rule.name]) for rule in rules)),
    }


def own_sources(estimator: object) -> dict[str, str | None]:
    """Return the SHA-256 of the modules of your own that an estimator comes from, by name.

    These are the modules of the object's class and its base classes, of the factory that made it, of the objects
    that it holds, and the modules that these import, except installed libraries. A module
    without a file that can be read is None; where the class's own text is known, as in a notebook, it is that text's.
    """
    found: dict[str, str | None] = {}
    homes, installed = set(_homes(estimator)), set()
    if (kind := type(estimator).__module__).partition(".")[0] not in _LIBRARIES:
        homes.add(kind)
        installed.add(kind.partition(".")[0])  # a rule of an installed library: that library's modules, not others'
    todo = sorted(home for home in homes if _is_own(home, installed))
    while todo:
        name = todo.pop()
        key = "__main__" if name in _MAIN else name
        if key in found:
            continue
        module = sys.modules.get(name)
        found[key] = _source(module, estimator)
        others = _taken_from(module) if module is not None else set()
        todo += sorted(other for other in others if other and _is_own(other, installed))
    return dict(sorted(found.items()))


class Sealed:
    """What is sent to workers, with the sources it was made from. A worker with other sources refuses it.

    It unpickles to `shared` itself.
    """

    def __init__(self, shared: Any, estimators: Iterable[Estimator]) -> None:
        self._content = pickle.dumps(shared)
        self._sources = {rule.name: own_sources(rule) for rule in estimators}
        self._files = files_of([module for modules in self._sources.values() for module in modules])

    def __reduce__(self) -> tuple[Any, ...]:
        return _unseal, (self._content, self._sources, self._files)


def _unseal(content: bytes, sources: dict[str, dict[str, str | None]], files: dict[str, str]) -> Any:
    know_files(files)
    shared = pickle.loads(content)
    for name, modules in sources.items():
        for module, expected in modules.items():
            there = sys.modules.get(module) or (sys.modules.get("__mp_main__") if module == "__main__" else None)
            here = None if there is None else _file_digest(there)
            if expected is not None and here is not None and here != expected:
                raise InputError(
                    f"the source of {name} (module {module}) in a worker differs from the source where the study "
                    "started: it changed while the study ran, or the worker has another version; start again with "
                    "--force"
                )
    return shared


def _homes(value: object, depth: int = _DEPTH) -> Iterator[str]:
    """Yield the modules of a value's classes, of the factory that made it, and of what it holds."""
    if isinstance(value, ModuleType):
        yield value.__name__
        return
    if (made_in := factory_module(value)) is not None:
        yield made_in
    if isinstance(value, (type, FunctionType)):
        yield value.__module__
        return
    for kind in type(value).__mro__:
        yield kind.__module__
    if depth:
        held: Iterable[Any] = vars(value).values() if hasattr(value, "__dict__") else ()
        if isinstance(value, dict):
            held = value.values()
        elif isinstance(value, (list, tuple, set, frozenset)):
            held = value
        for item in list(held)[:1000]:
            if not isinstance(item, (str, bytes, int, float, complex)):
                yield from _homes(item, depth - 1)


def _taken_from(module: ModuleType) -> set[str]:
    """Return the modules that a module takes something from: by its import statements, and by what it has."""
    found = {home for value in vars(module).values() if (home := _home(value))}
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    try:
        found |= _imports(inspect.getsource(module), package)
    except (OSError, TypeError, SyntaxError, ValueError):  # no Python source, or none to be had
        return found
    parents = {".".join(parts[:n]) for name in found if (parts := name.split(".")) for n in range(1, len(parts))}
    return {name for name in found | parents if name in sys.modules}


@functools.lru_cache(maxsize=1024)
def _imports(source: str, package: str) -> frozenset[str]:
    """Return the modules, and what could be modules, that a source text imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            levels = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            origin = ".".join([*levels, *([node.module] if node.module else [])])
            found |= {
                origin,
                *(f"{origin}.{alias.name}" for alias in node.names),
            }  # a name that is not a module is not in use
    return frozenset(found)


def _home(value: object) -> str | None:
    """Return the module of a global value: a module itself, or that of a class, a function or an object's class."""
    if isinstance(value, ModuleType):
        return value.__name__
    home = getattr(value, "__module__", None) if callable(value) else None
    return home if isinstance(home, str) else type(value).__module__


def _is_own(name: str, installed: set[str]) -> bool:
    """Say whether a module is the user's own, or of the library that the estimator comes from."""
    top = name.partition(".")[0]
    if top in _LIBRARIES:
        return False
    if name in _MAIN or top in installed:
        return True
    if top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and not any(Path(file).is_relative_to(folder) for folder in _library_folders())


@functools.cache
def _library_folders() -> set[str]:
    return {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}


def _source(module: ModuleType | None, estimator: object) -> str | None:
    found = None if module is None else _file_digest(module)
    if found is None and module is not None and type(estimator).__module__ == module.__name__:
        try:
            found = hashlib.sha256(inspect.getsource(type(estimator)).encode()).hexdigest()  # a notebook's
        except (OSError, TypeError):
            return None
    return found


def _file_digest(module: ModuleType) -> str | None:
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    try:
        return sha256(file)
    except OSError:
        pass
    try:  # in an archive
        return hashlib.sha256(module.__spec__.loader.get_data(file)).hexdigest()  # type: ignore[union-attr]
    except (AttributeError, OSError):
        return None


def _known_by_weights(estimator: Estimator) -> bool:
    """Say whether a file and its name say all that an estimator of this package holds."""
    ours = type(estimator).__module__.partition(".")[0] == _PACKAGE
    return ours and weights_of(estimator) is not None


def _state(estimator: Estimator) -> str | None:
    """Return a digest of what an object holds, the same in every process; None if it cannot be had."""
    import joblib

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # pickle spells a module out when it gives up on one
            found: str = joblib.hash(estimator, hash_name="sha1")
    except Exception:  # whatever pickling it raises
        return None
    return found


def _uses_torch(estimator: Estimator, sources: dict[str, str | None]) -> bool:
    homes = {*sources, type(estimator).__module__}
    values = (value for home in homes if home in sys.modules for value in vars(sys.modules[home]).values())
    return any((_home(value) or "").partition(".")[0] == "torch" for value in values)
