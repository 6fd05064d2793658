"""The trained model with a part of its mechanism replaced: what does that part do to the predictions?

Everything acts on the folded numbers. The exact circuit's parts are put in by hand, the rest stays as trained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from icl_estimators.heads import Head, require_head
from icl_estimators.transformer.folded import Folded
from icl_estimators.transformer.folded_forward import (
    by_sequence,
    features,
    folded_attention,
    layer_two_attention,
    mix,
)
from icl_estimators.transformer.positions import Far
from icl_estimators.transformer.reduced import reduce
from icl_estimators.validation import InputError

__all__ = [
    "EXACT_ATTENTION",
    "INTERVENTIONS",
    "PERFECT_READ_OUT",
    "Intervention",
    "intervened_attention",
    "intervened_logits",
]

EXACT_ATTENTION = "exact-attention"
"""The intervention that makes both layers' attention the exact circuit's."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """What is replaced; without arguments nothing is.

    Attributes
    ----------
    name : str
        As in interventions.csv.
    layer1, layer2 : Head, optional
        What replaces the head of that layer; by default it stays as trained.
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
        If a head is replaced by something unknown, `read_out_scale` is not a finite number of at least 0, or a perfect
        read-out is scaled or is to have no direct path.
    """

    name: str = "intact"
    layer1: Head | None = None
    layer2: Head | None = None
    direct_path: bool = True
    read_out_scale: float = 1.0
    perfect_read_out: bool = False

    def __post_init__(self) -> None:
        require_head(self.layer1, "layer1")
        require_head(self.layer2, "layer2")
        if not 0.0 <= self.read_out_scale < float("inf"):
            raise InputError(f"read_out_scale must be a finite number of at least 0, not {self.read_out_scale!r}")
        if self.perfect_read_out and not (self.direct_path and self.read_out_scale == 1.0):
            raise InputError("a perfect read-out has no direct path and no scale: leave direct_path and read_out_scale")


INTERVENTIONS = (
    Intervention("previous-token", layer1="previous"),
    Intervention("exact-match", layer2="match"),
    Intervention(EXACT_ATTENTION, layer1="previous", layer2="match"),
    Intervention("no-direct-path", direct_path=False),
    Intervention("read-out-half", read_out_scale=0.5),
    Intervention("read-out-double", read_out_scale=2.0),
    Intervention("exact-attention-read-out-double", layer1="previous", layer2="match", read_out_scale=2.0),
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
    changed = _changed_numbers(folded, intervention)
    reduced = reduce(changed)
    x1 = _features(changed, tokens, intervention, far)  # (m + 1, B, T)
    attention = _replaced(intervention.layer2, tokens, layer_two_attention(changed, reduced, x1, far))  # (B, T, T)
    if intervention.perfect_read_out:
        one_hot = (tokens[:, :, None] == torch.arange(folded.n_states, device=tokens.device)).to(attention.dtype)
        return (attention @ one_hot).log()
    averaged = (by_sequence(x1[:-1]) @ attention.mT).transpose(0, 1)  # (m, B, T)
    return (mix(reduced.direct, x1) + mix(reduced.induction, averaged)).permute(1, 2, 0)  # (B, T, K)


def intervened_attention(
    folded: Folded[Tensor], tokens: Tensor, intervention: Intervention, *, far: Far = None
) -> tuple[Tensor, Tensor]:
    """Return where both heads look under an intervention, shape (B, T, T) each.

    Parameters are those of :func:`intervened_logits`. A head whose output is zero still has weights; nothing uses them.

    Raises
    ------
    InputError
        If `far` is neither "last" nor a trained distance.

    Examples
    --------
    >>> from icl_estimators.transformer import Transformer, fold
    >>> tokens, change = torch.tensor([[0, 1, 0]]), Intervention(layer1="previous", layer2="match")
    >>> intervened_attention(fold(Transformer()), tokens, change)[1][0, -1].tolist()
    [0.0, 1.0, 0.0]
    """
    changed = _changed_numbers(folded, intervention)
    first = _replaced(intervention.layer1, tokens, folded_attention(changed, tokens, far=far)[0])
    second = layer_two_attention(changed, reduce(changed), _features(changed, tokens, intervention, far), far)
    return first, _replaced(intervention.layer2, tokens, second)


def _changed_numbers(folded: Folded[Tensor], intervention: Intervention) -> Folded[Tensor]:
    """Return the folded numbers with what needs no attention replaced."""
    changed = folded
    if not intervention.direct_path:
        changed = replace(changed, direct=torch.zeros_like(changed.direct))
    if intervention.read_out_scale != 1.0:
        changed = replace(changed, induction=changed.induction * intervention.read_out_scale)
    if intervention.layer1 == "zero":  # nothing reads the scratch block: as if it were empty
        token = torch.arange(2 * folded.n_states, device=folded.G.device) < folded.n_states
        rows = token[:, None].to(folded.G.dtype)
        changed = replace(
            changed, G=changed.G * rows * rows.T, direct=changed.direct * rows, induction=changed.induction * rows
        )
    if intervention.layer2 == "zero":
        changed = replace(changed, induction=torch.zeros_like(changed.induction))
    return changed


def _features(folded: Folded[Tensor], tokens: Tensor, intervention: Intervention, far: Far) -> Tensor:
    """Return x̃ with the scratch block that the replaced first head writes."""
    x1 = features(folded, tokens, far)
    if intervention.layer1 in (None, "zero"):
        return x1
    k = (len(x1) + 1) // 2  # K − 1 rows of each block, and a row of ones
    token = x1[: k - 1]
    attention = _replaced(intervention.layer1, tokens, folded_attention(folded, tokens, far=far)[0])
    read = (by_sequence(token) @ attention.mT).transpose(0, 1)
    return torch.cat([token, read, x1[-1:]])


def _replaced(head: Head | None, tokens: Tensor, trained: Tensor) -> Tensor:
    """Return the attention of a replaced head, shape (B, T, T)."""
    if head in (None, "zero"):
        return trained
    length = tokens.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    if head == "match":
        look = torch.zeros_like(trained, dtype=torch.bool)
        look[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
        look &= causal
    elif head == "previous":
        look = torch.eye(length, dtype=torch.bool, device=tokens.device).roll(-1, dims=1).tril()
        look[0, 0] = True
        look = look.expand_as(trained)
    else:
        look = causal.expand_as(trained)
    number = look.sum(dim=-1, keepdim=True)
    return torch.where(number > 0, look.to(trained.dtype) / number.clamp(min=1), trained)
