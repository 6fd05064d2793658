"""Does add-one stay ahead of the bigram's smoothed neighbours when chains get sparser or longer?"""

import icl_estimators as icl

if __name__ == "__main__":
    frame = icl.grid(
        "add-one,krichevsky-trofimov,unigram",
        concentration=[0.2, 1.0, 5.0],
        length=[10, 40],
        chains=200,
        sequences_per_chain=2,
        decomposition_chains=0,
    )
    means = frame.query("metric == 'regret_nats' and context_length == 'mean'")
    table = means.pivot(index=["concentration", "length"], columns="estimator", values="estimate")
    print(table.round(4).to_string())
