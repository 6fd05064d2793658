from __future__ import annotations

import builtins

import pytest

from icl_estimators.compiling import compile_cached, numba_is_there


@pytest.fixture(autouse=True)
def _ask_anew():
    numba_is_there.cache_clear()
    yield
    numba_is_there.cache_clear()


def add(x, y):
    return x + y


def test_numba_is_there_or_not(monkeypatch):
    numba = pytest.importorskip("numba")
    assert numba_is_there()
    numba_is_there.cache_clear()
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not numba_is_there()


@pytest.mark.parametrize("error", [ModuleNotFoundError("no numba"), ImportError("Numba needs NumPy 2.3 or less")])
def test_a_numba_that_does_not_load(monkeypatch, error):
    load = builtins.__import__

    def refuse(name, *rest):
        if name == "numba":
            raise error
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert not numba_is_there()


def test_what_is_compiled_gives_the_same():
    pytest.importorskip("numba")
    compiled = compile_cached(add)
    assert compiled(1, 2) == 3
    assert compiled(1.5, 2.0) == 3.5
    assert compiled.__name__ == "add"
