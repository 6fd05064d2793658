"""Where do both layers look at the start of a sequence, and is layer 1 a previous-token head?"""

from __future__ import annotations

from analysis import masses
from analysis.claims import Claim, Rule
from analysis.questions import Answer, Drawing, Sizes
from icl_estimators import compare
from icl_estimators.api import Comparison
from icl_estimators.experiments.attention_quantities import AttentionQuantities
from icl_estimators.reporting.figures.attention import EXAMPLE_POSITIONS, attention_example_figure, state_label
from icl_estimators.reporting.numbers import interval
from icl_estimators.reporting.results import Results

__all__ = ["answer", "example"]

START = 24
PREVIOUS_TOKEN = Rule(
    "a previous-token head puts at least 0.9 of its attention on the previous token, on average", low=0.9
)


def example(sizes: Sizes) -> Comparison:
    """Return one sequence's attention, of the shipped model and of the construction."""
    return compare(
        ["transformer", "construction"],
        chains=2,
        sequences_per_chain=1,
        decomposition_chains=0,
        length=sizes.length,
        seed=sizes.seed,
    )


def answer(sizes: Sizes, found: AttentionQuantities, shown: Comparison) -> Answer:
    """Tabulate, plot and judge."""
    length = sizes.length
    mass = found.previous_token_mass
    table = masses.table("transformer", "previous_token_mass", mass)
    start = min(START, length)
    early = masses.mean_over(mass, 2, start)
    late = masses.mean_over(mass, length, length)
    half = table[table["estimate"] < 0.5]["context_length"]
    lost = f" It falls below one half at n = {half.min()}." if len(half) else ""
    claims = (
        Claim(
            "layer 1 is a previous-token head",
            f"layer-1 attention on the previous token, mean over n = 2 to {start}",
            *early,
            PREVIOUS_TOKEN,
        ),
        Claim(
            "layer 1 is a previous-token head, at the end of the context",
            f"layer-1 attention on the previous token at n = {length}",
            *late,
            PREVIOUS_TOKEN,
        ),
    )
    weights = shown.attention_example.astype({"query_token": str, "key_token": str})
    tokens = weights.query("estimator == 'transformer' and layer == 1").drop_duplicates("query")["query_token"]
    word = "".join(state_label(token, 3) for token in tokens.head(EXAMPLE_POSITIONS))
    results = Results({"attention_example": weights}, shown.run)
    drawings = tuple(
        Drawing(
            f"attention-{name}",
            attention_example_figure(results, name),
            f"Attention of both layers on the start of one sequence, {what}. Each row is the token that attends, and "
            "sums to 1; grey is masked.",
            f"Two heat maps of attention weights on the tokens {word}, layers 1 and 2, {what}.",
        )
        for name, what in (("transformer", "the trained model"), ("construction", "the construction, ^ its sentinel"))
    )
    paragraph = (
        "{fig:attention-transformer} shows one sequence, and {fig:attention-construction} shows the construction on "
        "the same sequence. Layer 1 of the trained model attends to the previous token, and slightly to itself; layer "
        "2 attends to the tokens that followed earlier occurrences, less sharply than the construction. Over "
        f"{sizes.attention:,} sequences the mass on the previous token is {interval(*early, 3)} on average at n = 2 to "
        f"{start}, and {interval(*late, 3)} at n = {length}.{lost} The bias of the farthest distances is trained only "
        "by the last tokens of a sequence, so it drifts."
    )
    return Answer(
        "Attention at the start of a sequence",
        {"attention_example": weights, "previous_token": table},
        (paragraph,),
        drawings,
        claims,
    )
