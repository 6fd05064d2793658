"""A rule of your own: which estimator is it like, and how far is it from Bayes?

A rule is any object with a name, n_states and predict_proba. This one forgets: it counts only the last few transitions.
"""

import numpy as np

import icl_estimators as icl


class LastFew:
    """Add-one smoothing of the last `memory` transitions."""

    def __init__(self, memory: int, n_states: int = 3) -> None:
        self.name, self.n_states, self.memory = f"last-{memory}", n_states, memory

    def predict_proba(self, tokens: np.ndarray) -> np.ndarray:
        """(N, T) integers → (N, T, K): [:, n − 1] predicts token n + 1 from the first n."""
        n_sequences, length = tokens.shape
        predictions = np.empty((n_sequences, length, self.n_states))
        for n in range(1, length + 1):
            counts = np.ones((n_sequences, self.n_states))
            for at in range(max(1, n - self.memory), n):
                follows = tokens[:, at - 1] == tokens[:, n - 1]
                counts[np.flatnonzero(follows), tokens[follows, at]] += 1
            predictions[:, n - 1] = counts / counts.sum(axis=1, keepdims=True)
        return predictions


if __name__ == "__main__":
    rule = LastFew(10)
    icl.check_estimator(rule, 3)  # says in one line what breaks the contract
    found = icl.compare([rule, "add-one", "recency:0.8"], chains=200, sequences_per_chain=2, length=30)
    means = found.risk.query("metric == 'regret_nats' and context_length == 'mean'")
    print(means[["estimator", "estimate", "ci_low", "ci_high"]].round(4).to_string(index=False))
    nearest = found.nearest.query("measure == 'total_variation' and context_length == 'mean'").iloc[0]
    print(
        f"{nearest.estimator} is nearest to {nearest.rule}: {100 * nearest.estimate:.1f} % of the probability elsewhere"
    )
