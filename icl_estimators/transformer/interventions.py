"""The trained model with a part of its mechanism replaced: what does that part do to the predictions?

Everything acts on the folded numbers. The exact circuit's parts are put in by hand, the rest stays as trained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.folded_forward import by_sequence, features, layer_two_attention, mix
from icl_estimators.transformer.positions import Far
from icl_estimators.transformer.reduced import reduce
from icl_estimators.validation import InputError

__all__ = ["EXACT_ATTENTION", "INTERVENTIONS", "PERFECT_READ_OUT", "Intervention", "intervened_logits"]

EXACT_ATTENTION = "exact-attention"
"""The intervention that makes both layers' attention the exact circuit's."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """What is replaced; without arguments nothing is.

    Attributes
    ----------
    name : str
        As in interventions.csv.
    previous_token : bool
        Layer 1 looks at the previous token and nowhere else (the first position at itself).
    exact_match : bool
        Layer 2 looks, evenly, at the positions whose predecessor is the current token; where there is none it stays as
        trained.
    direct_path : bool
        False takes a position's own features out of its logits.
    read_out_scale : float
        Multiplies what layer 2 adds to the logits; at least 0.
    perfect_read_out : bool
        The prediction is what layer 2's attention copies, Σ_j A_nj 1[t_j = w], and nothing else. Its logits are −∞ for
        a state that has not occurred.

    Raises
    ------
    InputError
        If `read_out_scale` is not a finite number of at least 0, or a perfect read-out is scaled or is to have no
        direct path.
    """

    name: str = "intact"
    previous_token: bool = False
    exact_match: bool = False
    direct_path: bool = True
    read_out_scale: float = 1.0
    perfect_read_out: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.read_out_scale < float("inf"):
            raise InputError(f"read_out_scale must be a finite number of at least 0, not {self.read_out_scale!r}")
        if self.perfect_read_out and not (self.direct_path and self.read_out_scale == 1.0):
            raise InputError("a perfect read-out has no direct path and no scale: leave direct_path and read_out_scale")


INTERVENTIONS = (
    Intervention("previous-token", previous_token=True),
    Intervention("exact-match", exact_match=True),
    Intervention(EXACT_ATTENTION, previous_token=True, exact_match=True),
    Intervention("no-direct-path", direct_path=False),
    Intervention("read-out-half", read_out_scale=0.5),
    Intervention("read-out-double", read_out_scale=2.0),
    Intervention("exact-attention-read-out-double", previous_token=True, exact_match=True, read_out_scale=2.0),
)
"""The interventions of interventions.csv with a finite regret."""

PERFECT_READ_OUT = Intervention("perfect-read-out", perfect_read_out=True)
"""What the trained attention copies, taken as the prediction: also in interventions.csv, without a finite regret."""


def intervened_logits(folded: Folded[Tensor], tokens: Tensor, intervention: Intervention, *, far: Far = None) -> Tensor:
    """Return logits of the next token under an intervention.

    Parameters
    ----------
    folded : Folded
        One model.
    tokens : Tensor of int64, shape (B, T)
    intervention : Intervention
    far : "last", int or None
        The rule for distances beyond the trained ones; see :mod:`icl_estimators.transformer.positions`.

    Returns
    -------
    Tensor, shape (B, T, K)

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold, folded_logits
    >>> folded, tokens = fold(Transformer()), torch.tensor([[0, 1, 0, 2, 0]])
    >>> bool((intervened_logits(folded, tokens, Intervention()) == folded_logits(folded, tokens)).all())
    True
    """
    changed = folded
    if not intervention.direct_path:
        changed = replace(changed, direct=torch.zeros_like(changed.direct))
    if intervention.read_out_scale != 1.0:
        changed = replace(changed, induction=changed.induction * intervention.read_out_scale)
    reduced = reduce(changed)
    x1 = features(changed, tokens, far)  # (m + 1, B, T)
    if intervention.previous_token:
        x1 = _previous_token_features(x1)
    attention = layer_two_attention(changed, reduced, x1, far)  # (B, T, T)
    if intervention.exact_match:
        attention = _exact_match_attention(tokens, attention)
    if intervention.perfect_read_out:
        one_hot = (tokens[:, :, None] == torch.arange(folded.n_states, device=tokens.device)).to(attention.dtype)
        return (attention @ one_hot).log()
    averaged = (by_sequence(x1[:-1]) @ attention.mT).transpose(0, 1)  # (m, B, T)
    return (mix(reduced.direct, x1) + mix(reduced.induction, averaged)).permute(1, 2, 0)  # (B, T, K)


def _previous_token_features(x1: Tensor) -> Tensor:
    """Put the previous position's token block into each scratch block; the first position reads itself."""
    k = (len(x1) + 1) // 2  # K − 1 rows of each block, and a row of ones
    token = x1[: k - 1]
    before = torch.cat([token[..., :1], token[..., :-1]], dim=-1)
    return torch.cat([token, before, x1[-1:]])


def _exact_match_attention(tokens: Tensor, trained: Tensor) -> Tensor:
    """Spread attention evenly over the positions whose predecessor is the current token."""
    length = tokens.shape[1]
    match = torch.zeros_like(trained, dtype=torch.bool)
    match[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
    match &= torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    number = match.sum(dim=-1, keepdim=True)
    return torch.where(number > 0, match.to(trained.dtype) / number.clamp(min=1), trained)
