"""The losses on padded arrays, for libraries that derive gradients themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice_trainer.arrays import MicroBatch, Step, TokenReduction
from sluice_trainer.losses.spec import LossSpec, MaskOutside


@dataclass(frozen=True)
class Padded:
    """A micro-batch as rectangles of data by positions. What pads has mask 0."""

    inputs: NDArray[np.int32]
    targets: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    advantages: NDArray[np.float32]
    mask: NDArray[np.float32]
    scale: float

    @property
    def data(self) -> int:
        return len(self.inputs)


def pad(micro: MicroBatch, *, to: int = 1, rows: int = 1, token: int = 0) -> Padded:
    """Pads to the longest datum, rounded up to a multiple of `to`, and to a multiple of
    `rows` data: libraries that compile once per shape then meet few of them. Rows of padding
    have mask 0 and count nowhere."""
    longest = max(len(d) for d in micro.data)
    width = -(-longest // to) * to
    height = -(-len(micro.data) // rows) * rows
    shape = (height, width)
    out = Padded(
        np.full(shape, token, np.int32),
        np.full(shape, token, np.int32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
        np.zeros(shape, np.float32),
        micro.scale,
    )
    for i, d in enumerate(micro.data):
        n = len(d)
        out.inputs[i, :n] = d.inputs
        out.targets[i, :n] = d.targets
        out.logprobs[i, :n] = d.logprobs
        out.advantages[i, :n] = d.advantages
        out.mask[i, :n] = d.mask
    return out


def loss(
    xp: Any,
    stop_gradient: Any,
    spec: LossSpec,
    step: Step,
    batch: Any,
    logprobs: Any,
    data: int,
    before: Any = None,
    reference: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """Loss of a padded micro-batch of `data` data, and figures of its tokens.

    xp is jax.numpy or torch. `batch` has the fields of Padded as that library's arrays;
    `logprobs`, `before` and `reference` have the shape of its mask.
    """
    mask, advantages = batch.mask, batch.advantages
    old = batch.logprobs
    weight = mask
    if spec.correction is not None:
        if before is None:
            raise ValueError("a correction needs the trainer's own logprobs of before the step")
        old = stop_gradient(before)
        log_w = (old - batch.logprobs) * mask
        if spec.correction.by_sequence:
            log_w = log_w.sum(-1)[:, None] + 0 * mask
        w = xp.exp(log_w)
        if isinstance(spec.correction, MaskOutside):
            within = (w >= spec.correction.low) & (w <= spec.correction.high)
            w = xp.where(within, w, xp.zeros_like(w))
        else:
            w = xp.clip(w, None, spec.correction.most)
        weight = mask * w
    counts = mask.sum(-1)
    counts = xp.where(counts > 0, counts, xp.ones_like(counts))
    delta = (logprobs - old) * mask
    if spec.kind == "gspo":
        delta = (delta.sum(-1) / counts)[:, None] + 0 * mask
    ratio = xp.exp(delta)
    clipped = xp.clip(ratio, step.clip_low, step.clip_high)
    if spec.kind in ("ppo", "gspo"):
        per_token = -xp.minimum(ratio * advantages, clipped * advantages)
        below = (ratio < step.clip_low) & (advantages < 0)
        above = (ratio > step.clip_high) & (advantages > 0)
    elif spec.kind == "importance_sampling":
        per_token = -ratio * advantages
        below = above = ratio < 0
    else:
        per_token = -stop_gradient(clipped) * advantages * logprobs
        below, above = ratio < step.clip_low, ratio > step.clip_high
    total = per_token * weight
    if spec.kl > 0:
        if reference is None:
            raise ValueError("kl needs the reference's logprobs")
        d = (stop_gradient(reference) - logprobs) * mask
        total = total + spec.kl * batch.scale * (xp.exp(d) - d - 1) * mask
    per_datum = total.sum(-1)
    if step.reduction is TokenReduction.MEAN:
        per_datum = per_datum / counts
    off = stop_gradient(logprobs - batch.logprobs) * mask
    figures = {
        "ratio_sum": stop_gradient((ratio * mask).sum()),
        "ratio_max": stop_gradient((ratio * mask).max()),
        "ratio_off": stop_gradient((abs(ratio - 1) * mask).max()),
        # Of KL(sampler || these weights), never below 0: k3 of the module's docstring.
        "kl_sum": stop_gradient(((xp.exp(off) - off - 1) * mask).sum()),
        "mismatch_sum": stop_gradient((abs(off) * mask).sum()),
        "clipped_low": stop_gradient((below * mask).sum()),
        "clipped_high": stop_gradient((above * mask).sum()),
    }
    return per_datum.sum() / data, figures
