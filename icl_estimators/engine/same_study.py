"""Whether two runs belong to one study: the comparison, and the digest that each block of a study contains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from icl_estimators.provenance import ENVIRONMENT, RESUMED, environment_differences, spelled

__all__ = ["differences", "digest"]


def digest(identity: dict[str, Any]) -> str:
    """Return the SHA-256 of an identity: each of its blocks contains it."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def differences(earlier: dict[str, Any], now: dict[str, Any], wording: str = RESUMED) -> list[str]:
    """Return what differs between two studies' options and identities.

    An unknown source or state of an estimator counts as a difference, because nothing shows that it is the same.

    Parameters
    ----------
    earlier, now : dict
        Plain values.
    wording : str
        Takes what differs, its earlier value, and the one now.

    Examples
    --------
    >>> differences({"seed": 0, "cpu": {"features": ["AVX2"]}}, {"seed": 1, "cpu": {"features": ["AVX2", "FMA3"]}})
    ['seed was 0 and is now 1', 'CPU features (FMA3) was absent and is now there']
    """
    found: list[str] = []
    for key in sorted({*earlier, *now} - ENVIRONMENT, key=lambda key: (key in ("sources", "states"), key)):
        then, here = earlier.get(key), now.get(key)
        if key in ("sources", "states"):
            found += _unproven(key, then or {}, here or {}, wording)
        elif then != here:
            found.append(wording.format(key, spelled(then), spelled(here)))
    return found + environment_differences(earlier, now, wording)


def _unproven(key: str, then: dict[str, Any], here: dict[str, Any], wording: str) -> Iterator[str]:
    unknown = "so nothing shows that it is the same"
    for name in sorted({*then, *here}):
        if key == "states":
            if name in here and here[name] is None:
                yield f"what {name} holds is not known because it cannot be pickled, {unknown}"
            elif then.get(name) != here.get(name):
                yield wording.format(f"what {name} holds", spelled(then.get(name)), spelled(here.get(name)))
            continue
        before, after = then.get(name, {}), here.get(name, {})
        for module in sorted({*before, *after}):
            what = f"the source of {name} (module {module})"
            if module in after and after[module] is None:
                yield f"{what} is not known, {unknown}"
            elif before.get(module) != after.get(module):
                yield wording.format(what, spelled(before.get(module)), spelled(after.get(module)))
