"""The README's numbers: which sentence has which, and which table each comes from: ``python -m analysis.readme``.

A sentence is a template with holes for its numbers. The command fills them again from the tables under data/; the tests
hold that nothing is left to fill, so that a number changed by hand, or a table changed alone, is an error.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from icl_estimators.estimators.registry import parse_spec

__all__ = ["DATA", "README", "SCREEN", "Sentence", "refresh", "screen_of", "sentences"]

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DATA = ROOT / "data" / "readme"
CHECKPOINTS = ROOT / "data" / "checkpoints"

SCREEN = DATA / "identify.txt"
"""What ``python -m icl_estimators.identify`` prints, which the README shows."""

VISITS = (1, 2, 5, 10, 20, 40)
_HOLE = r"([−-]?\d[\d,]*(?:\.\d+)?|inf)"


@dataclass(frozen=True)
class Sentence:
    """A stretch of the README and the numbers that belong into its holes.

    Attributes
    ----------
    text : str
        With ``{}`` for each number; white space stands for any.
    numbers : tuple of str
        As they are to be printed.
    source : str
        The table, for messages.
    """

    text: str
    numbers: tuple[str, ...]
    source: str

    def find(self, page: str) -> re.Match[str]:
        """Find the stretch, whatever its numbers and line breaks.

        Raises
        ------
        ValueError
            If the page does not have it exactly once, or the numbers are not as many as the holes.
        """
        if self.text.count("{}") != len(self.numbers):
            raise ValueError(f"{len(self.numbers)} numbers for the holes of {self.text!r}")
        parts = (r"\s+".join(map(re.escape, re.split(r"\s+", part))) for part in self.text.split("{}"))
        found = list(re.finditer(_HOLE.join(parts), page))
        if len(found) != 1:
            raise ValueError(f"the README has {len(found)} stretches like {self.text!r}: fix analysis/readme.py")
        return found[0]

    def changes(self, page: str) -> list[tuple[str, str]]:
        """Return the numbers that are not what the table says: (printed, right)."""
        return [(a, b) for a, b in zip(self.find(page).groups(), self.numbers, strict=True) if a != b]

    def fill(self, page: str) -> str:
        """Return the page with the right numbers."""
        found = self.find(page)
        for index in range(len(self.numbers), 0, -1):
            page = page[: found.start(index)] + self.numbers[index - 1] + page[found.end(index) :]
        return page


@cache
def _table(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"context_length": str})


def _three(value: float) -> str:
    """Spell with three decimals, four where it is small."""
    return f"{value:.3f}" if value >= 0.03 else f"{value:.4f}"


def _with_interval(row: pd.Series, digits: int) -> tuple[str, ...]:
    return tuple(f"{row[column]:.{digits}f}" for column in ("estimate", "ci_low", "ci_high"))


def sentences() -> Iterator[Sentence]:
    """Return every stretch of the README whose numbers come from a table."""
    yield from _evaluate()
    yield from _smoothing()
    yield from _mechanism()
    yield from _attention()
    yield from _runs()


def _evaluate() -> Iterator[Sentence]:
    source = "data/readme/evaluate_risk.csv"
    risk = _table(ROOT / source)
    for name in risk["estimator"].unique():
        own = risk[risk["estimator"] == name]
        regret = own[own["metric"] == "regret_nats"].set_index("context_length")
        if name == "add-one":
            continue  # 0 by definition
        if regret["estimate"].isin([float("inf")]).any():
            infinite = own[(own["metric"] == "p_infinite") & (own["context_length"] == "mean")].iloc[0]
            numbers = tuple(f"{100 * infinite[column]:.1f}" for column in ("estimate", "ci_low", "ci_high"))
            assert (regret.loc[["3", "12", "50", "100"], "estimate"] == float("inf")).all()
            text = f"| {name} | inf: infinite KL in {{}} % [{{}}, {{}}] of predictions | inf | inf | inf | inf |"
            yield Sentence(text, numbers, source)
            continue
        label, gamma = name, ()
        spec = parse_spec(name)
        if spec.value is not None:
            label, gamma = name.replace(f":{spec.value}", ":{}", 1), (str(spec.value),)
        numbers = (*_with_interval(regret.loc["mean"], 4), *(_three(regret.loc[n, "estimate"]) for n in _SHOWN))
        yield Sentence(f"| {label} | {{}} [{{}}, {{}}] | {{}} | {{}} | {{}} | {{}} |", (*gamma, *numbers), source)
    model = risk[(risk["estimator"] == "transformer") & (risk["metric"] == "regret_nats")].set_index("context_length")
    yield Sentence(
        "(regret {} nats at n = 24) and then moves away from it again ({} at n = 100)",
        tuple(f"{model.loc[n, 'estimate']:.4f}" for n in ("24", "100")),
        source,
    )


_SHOWN = ("3", "12", "50", "100")


def _smoothing() -> Iterator[Sentence]:
    source = "data/readme/smoothing.csv"
    fits = _table(ROOT / source)
    counts = fits[(fits["by"] == "visits") & (fits["parameter"] == "pseudo_count")].set_index("value")
    digits = dict(zip(VISITS, (3, 3, 3, 3, 2, 2), strict=True))
    cells = " | ".join(["{} [{}, {}]"] * len(VISITS))
    yield Sentence(
        f"| α̂ [95 %] | {cells} |",
        tuple(number for v in VISITS for number in _with_interval(counts.loc[v], digits[v])),
        source,
    )
    every = fits[fits["by"] == "overall"].set_index(["family", "parameter"])
    pseudo_count, gamma = every.loc["add-constant", "pseudo_count"], every.loc["temperature", "gamma"]
    yield Sentence(
        "γ̂ = {}, explains {} % of the predictions (1 − KL(p̂ ‖ rule)/KL(p̂ ‖ uniform)); the best single pseudo-count, "
        "{}, explains {} %.",
        (
            f"{gamma['estimate']:.3f}",
            f"{100 * gamma['explained']:.1f}",
            f"{pseudo_count['estimate']:.2f}",
            f"{100 * pseudo_count['explained']:.1f}",
        ),
        source,
    )
    other = _table(DATA / "evaluate_smoothing.csv").set_index("value")
    yield Sentence(
        "`evaluate` fits the same to chains of its own and prints {} [{}, {}] at n_v = 5",
        _with_interval(other.loc[5], 3),
        "data/readme/evaluate_smoothing.csv",
    )
    recipe = _table(DATA / "training_runs.csv")
    spread = recipe[recipe["parameter"] == "between_seed_sd_log"]["estimate"].item()
    yield Sentence(
        "Between ten training runs of the recipe α̂ has a standard deviation of {} %",
        (f"{100 * spread:.1f}",),
        "data/readme/training_runs.csv",
    )
    sparse = _table(DATA / "other_prior.csv").set_index("value")
    yield Sentence(
        "trained on chains with α = {}, the model acts after one visit like a pseudo-count of {}, not {}",
        (
            f"{sparse.loc[1, 'trained_at']:g}",
            f"{sparse.loc[1, 'estimate']:.3f}",
            f"{counts.loc[1, 'estimate']:.3f}",
        ),
        "data/readme/other_prior.csv",
    )


def _mechanism() -> Iterator[Sentence]:
    source = "data/study/leftover_mass.csv"  # of the same chains
    rows = _table(ROOT / source)
    exact = rows[(rows["intervention"] == "exact-attention") & (rows["quantity"] == "log_pseudo_count")]
    exact = exact[exact["visits"].notna()].set_index("visits")
    exponential = exact[["estimate", "difference", "ci_low", "ci_high"]].map(math.exp)
    digits = dict(zip(VISITS, (3, 3, 3, 2, 2, 2), strict=True))
    cells = " | ".join(["{}"] * len(VISITS))
    yield Sentence(
        f"| α̂ with exact attention | {cells} |",
        tuple(f"{exponential.loc[v, 'estimate']:.{digits[v]}f}" for v in VISITS),
        source,
    )
    cells = " | ".join(["{} [{}, {}]"] * len(VISITS))
    yield Sentence(
        f"| intact over exact [95 %] | {cells} |",
        tuple(f"{exponential.loc[v, c]:.2f}" for v in VISITS for c in ("difference", "ci_low", "ci_high")),
        source,
    )
    source = "data/study/refitted_readout.csv"
    regret = _table(ROOT / source).set_index(["attention", "read_out"])["regret_nats"]
    model, kept = regret["model's", "trained"].item(), regret["exact", "trained"].item()
    yield Sentence(
        "under the trained read-out the mean regret is {} nats where the model's is {}, but that read-out was trained "
        "together with spread attention: with one fitted to exact frequencies it is {}, {} or {}, as f is 0, n_w/(n + "
        "1) or n_w/n where v was not left before",
        tuple(f"{value:.4f}" for value in (kept, model, *regret["exact", "refitted"])),
        source,
    )


def _attention() -> Iterator[Sentence]:
    source = "data/readme/evaluate_attention.csv"
    rows = _table(ROOT / source)
    masses = {
        quantity: own.set_index(own["context_length"].astype(int))["estimate"]
        for quantity, own in rows.groupby("quantity")
    }
    previous = masses["previous_token_mass"]
    yield Sentence(
        "the first head puts {} to {} of its attention on the previous token up to n = 24, less later, and {} at "
        "n = 100",
        (f"{previous.loc[2:24].min():.2f}", f"{previous.loc[2:24].max():.2f}", f"{previous.loc[100]:.2f}"),
        source,
    )
    lengths = [3, 6, 12, 24, 50]
    yield Sentence(
        "second head's attention {}, {}, {}, {} and {} falls on matching positions at n = 3, 6, 12, 24 and 50, where "
        "uniform attention would put {}, {}, {}, {} and {}.",
        tuple(f"{masses[q].loc[n]:.2f}" for q in ("match_mass", "match_mass_chance") for n in lengths),
        source,
    )


def _runs() -> Iterator[Sentence]:
    source = "data/checkpoints/*.json"
    found = [json.loads(path.read_text(encoding="utf-8"))["metrics"] for path in CHECKPOINTS.glob("k3-seed*.json")]

    def ends(metric: str, digits: int) -> tuple[str, str]:
        values = [metrics[metric] for metrics in found]
        return f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"

    low, high = ends("regret_nats", 4)
    assert low == high, "the runs' regrets differ in the fourth decimal: say so in the README"
    error = max(metrics["regret_late_nats_se"] for metrics in found)
    yield Sentence(
        "end at a regret of {} nats averaged over n = 1 … 100 and between {} and {} over n = 51 … 100 (standard error "
        "{}); expect a training loss of about {} nats",
        (low, *ends("regret_late_nats", 4), f"{error:.4f}", ends("log_loss_nats", 2)[0]),
        source,
    )
    yield Sentence("The ten shipped runs end at regrets between {} and {}:", ends("regret_nats", 5), source)
    source = "data/study/model_size.csv"
    size = f"{_table(ROOT / source)['parameters'].sum():,}"
    yield Sentence("one scalar bias per relative distance and layer: {} weights.", (size,), source)
    yield Sentence("so that the {} weights act through {} numbers", (size, str(3**2 + 6**2 + 200 + 2 * 18)), source)


def refresh(page: Path = README) -> list[str]:
    """Put the tables' numbers into the README; return a line for each that changed.

    Raises
    ------
    ValueError
        If a sentence is not found, or more than once.
    """
    text = page.read_text(encoding="utf-8")
    changed = list(_told(text, sentences()))
    for sentence in sentences():
        text = sentence.fill(text)
    if screen_of(text) != SCREEN.read_text(encoding="utf-8"):
        changed.append(f"the screen of identify ({SCREEN.name})")
        shown = "".join(f"    {line}".rstrip() + "\n" for line in SCREEN.read_text(encoding="utf-8").splitlines())
        text = _SCREEN.sub(lambda found: found[1] + shown + "\n", text, count=1)
    page.write_text(text, encoding="utf-8")
    return changed


_SCREEN = re.compile(r"(    python -m icl_estimators\.identify\b[^\n]*\n\n)((?:    [^\n]*\n|\n)+)(?=\S)")


def screen_of(page: str) -> str:
    """Return what the page shows as printed by ``identify``.

    Raises
    ------
    ValueError
        If the page does not show it.
    """
    found = _SCREEN.search(page)
    if found is None:
        raise ValueError("the README does not show what identify prints")
    return "\n".join(line.removeprefix("    ") for line in found[2].rstrip().splitlines()) + "\n"


def _told(text: str, found: Iterable[Sentence]) -> Iterator[str]:
    for sentence in found:
        for printed, right in sentence.changes(text):
            yield f"{printed} → {right} ({sentence.source}): {sentence.text[:60]}"


if __name__ == "__main__":
    print("\n".join(refresh()))
    sys.exit(0)
