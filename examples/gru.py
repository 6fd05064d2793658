"""A GRU that is trained for some seconds on fresh chains: which estimator has it become?"""

import torch

import icl_estimators as icl


class Recurrent(torch.nn.Module):
    """From tokens, (N, T), to logits, (N, T, K)."""

    def __init__(self, n_states: int = 3, width: int = 32) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(n_states, width)
        self.gru = torch.nn.GRU(width, width, batch_first=True)
        self.read_out = torch.nn.Linear(width, n_states)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.gru(self.embed(tokens))
        return self.read_out(hidden)


def train(seed: int, steps: int = 200, length: int = 20) -> Recurrent:
    """Train on the next token of chains that are drawn for each step."""
    torch.manual_seed(seed)
    model = Recurrent()
    adam = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(steps):
        chains = range(64 * step, 64 * (step + 1))
        sample = icl.sample_chains(chains, sequences_per_chain=1, length=length, seed=1000 + seed, purpose="example")
        inputs, targets = torch.tensor(sample.inputs), torch.tensor(sample.targets)
        loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
    return model


if __name__ == "__main__":
    torch.set_num_threads(1)
    runs = [icl.from_torch(train(seed), n_states=3) for seed in (0, 1)]
    models = icl.training_runs({"gru": runs})
    found = icl.compare([*models, "add-one", "unigram"], chains=200, sequences_per_chain=2, length=20)
    means = found.risk.query("metric == 'regret_nats' and context_length == 'mean'")
    print(means[["estimator", "estimate", "ci_low", "ci_high"]].round(3).to_string(index=False))
    nearest = found.nearest.query("measure == 'total_variation' and context_length == 'mean'")
    print(nearest[["estimator", "rule"]].to_string(index=False))
