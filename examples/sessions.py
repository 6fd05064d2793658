"""Many short sessions in a table: does the last page tell which comes next?"""

import numpy as np
import pandas as pd

import icl_estimators as icl

PAGES = ["home", "search", "item", "cart", "help"]


def sessions(count: int, seed: int = 0) -> pd.DataFrame:
    """Return visits to pages, one in each row, from one chain that all visitors share."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(len(PAGES), 0.3), size=len(PAGES))
    rows = []
    for visitor in range(count):
        page = int(rng.integers(len(PAGES)))
        for step in range(int(rng.integers(2, 8))):
            rows.append({"visitor": f"v{visitor}", "step": step, "page": PAGES[page]})
            page = int(rng.choice(len(PAGES), p=law[page]))
    return pd.DataFrame(rows)


if __name__ == "__main__":
    table = sessions(200).sample(frac=1.0, random_state=0)  # the order column puts the rows right
    data = icl.observed(table, state_column="page", id_column="visitor", order_column="step", states_order=PAGES)
    print(data.described())
    found = icl.compare_observed(data, "add-one,unigram,uniform", pool=True)
    print(found.risk[["estimator", "estimate", "ci_low", "ci_high"]].round(3).to_string(index=False))
    orders = found.orders.query("history == 'pooled' and fitted == False")
    print(orders[["order", "log_loss_nats", "log_bayes_factor"]].round(3).to_string(index=False))
