"""A TransformerLens model with a larger vocabulary: its probabilities of three tokens, and where its heads look.

Needs the extra `models`. The weights are random, as nothing is downloaded; put your own model in their place.
"""

import warnings

import torch

import icl_estimators as icl

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    torch.manual_seed(0)
    config = HookedTransformerConfig(
        n_layers=2, n_heads=2, d_model=32, d_head=16, n_ctx=64, d_vocab=64, attn_only=True, device="cpu", seed=0
    )
    module = HookedTransformer(config)
    model = icl.from_torch(module, n_states=3, tokens=[7, 11, 13], bos=50, max_length=60, name="lens")
    found = icl.compare([model, "add-one"], chains=60, sequences_per_chain=1, length=20, decomposition_chains=0)
    print(f"mass on other tokens: {model.mass_elsewhere([[0, 1, 2, 0]]).mean():.2f}")
    heads = found.heads.query("context_length == 'mean' and best")
    print(heads[["layer", "head", "quantity", "estimate", "chance"]].round(3).to_string(index=False))
