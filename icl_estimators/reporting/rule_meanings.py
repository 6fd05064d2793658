"""What the rules of the package predict, by family, for readers of a report."""

from __future__ import annotations

__all__ = ["RULE_MEANINGS"]

RULE_MEANINGS: dict[str, str] = {
    "add-constant": "(n_vw + α)/(n_v + Kα): every transition is counted α times more than it occurred; add-one is "
    "α = 1, Krichevsky–Trofimov α = ½",
    "bigram": "n_vw/n_v, the frequencies of what followed v; uniform before v has been left",
    "construction": "n_vw/n_v, copied by attention: the induction head written as matrices; token "
    "frequencies before v has been left",
    "construction-softmax": "softmax of γ(f_w + 1[w = v]), with f the frequencies that the induction head copies: a "
    "finite read-out, and a bonus for repeating v",
    "construction-softmax:direct_path=false": "softmax of γ f_w, with f the frequencies that the induction head "
    "copies: a finite read-out",
    "recency": "add-one on counts that lose the factor d with every token that passes",
    "unigram": "(n_w + 1)/(n + K): how often w occurred, whatever the current token",
    "uniform": "1/K",
}
"""Family to its formula; v is the current token, n_vw the number of transitions v → w, n_v their sum."""

ORDER = "the same with what followed the last k tokens instead of the last one"
"""What a family of another order predicts."""
