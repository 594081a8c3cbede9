"""The losses datum by datum, with the gradient worked out by hand.

Slow, and meant to be read: it is what the fast ones are checked against.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sluice_trainer.arrays import Datum, MicroBatch, Step, TokenReduction
from sluice_trainer.losses.spec import LossSpec, MaskOutside

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DatumLoss:
    """A datum's loss, before the mean over the micro-batch's data."""

    loss: float
    #: d loss / d p, one value for each of the datum's positions; 0 where the mask is False.
    gradient: Floats
    #: r of the sampled tokens.
    ratios: Floats
    #: How many of them gave no gradient because r was below, above the bounds.
    clipped_low: int
    clipped_high: int


def _weights(spec: LossSpec, log_w: Floats) -> Floats:
    correction = spec.correction
    if correction is None:
        return np.ones_like(log_w)
    if correction.by_sequence:
        log_w = np.full_like(log_w, log_w.sum())
    w = np.exp(log_w)
    if isinstance(correction, MaskOutside):
        return np.where((w >= correction.low) & (w <= correction.high), w, 0.0)
    return np.minimum(w, correction.most)


def datum_loss(
    spec: LossSpec,
    step: Step,
    datum: Datum,
    scale: float,
    logprobs: Floats,
    before: Floats | None = None,
    reference: Floats | None = None,
) -> DatumLoss:
    """Loss and gradient of one datum. `logprobs` are p of every position; `before` are q and
    `reference` ref, where the loss needs them."""
    at = datum.mask
    p = np.asarray(logprobs, np.float64)[at]
    b = datum.logprobs.astype(np.float64)[at]
    a = datum.advantages.astype(np.float64)[at]
    count = len(p)
    old = b
    w = np.ones(count)
    if spec.correction is not None:
        if before is None:
            raise ValueError("a correction needs the trainer's own logprobs of before the step")
        old = np.asarray(before, np.float64)[at]
        w = _weights(spec, old - b)

    r = np.exp(p - old)
    low, high = step.clip_low, step.clip_high
    # Where the clipped branch is the smaller one, and differs, the gradient is 0.
    below, above = (r < low) & (a < 0), (r > high) & (a > 0)
    if spec.kind == "ppo":
        loss = -np.minimum(r * a, np.clip(r, low, high) * a)
        gradient = np.where(below | above, 0.0, -r * a)
    elif spec.kind == "importance_sampling":
        below, above = np.zeros(count, bool), np.zeros(count, bool)
        loss, gradient = -r * a, -r * a
    elif spec.kind == "cispo":
        below, above = r < low, r > high
        loss = -np.clip(r, low, high) * a * p
        gradient = -np.clip(r, low, high) * a
    else:
        s = float(np.exp((p - old).mean()))
        r = np.full(count, s)
        below, above = (r < low) & (a < 0), (r > high) & (a > 0)
        loss = -np.minimum(r * a, np.clip(r, low, high) * a)
        # Every token's loss depends on every token's p, through their mean.
        per_token = np.where(below | above, 0.0, -r * a) * w
        gradient = np.full(count, per_token.sum() / count)
    loss = loss * w
    if spec.kind != "gspo":
        gradient = gradient * w
    if spec.kl > 0:
        if reference is None:
            raise ValueError("kl needs the reference's logprobs")
        d = np.asarray(reference, np.float64)[at] - p
        loss = loss + spec.kl * scale * (np.exp(d) - d - 1)
        gradient = gradient + spec.kl * scale * (1 - np.exp(d))
    by = count if step.reduction is TokenReduction.MEAN else 1
    full = np.zeros(len(datum))
    full[at] = gradient / by
    return DatumLoss(float(loss.sum() / by), full, r, int(below.sum()), int(above.sum()))


def micro_batch_loss(
    spec: LossSpec,
    step: Step,
    micro: MicroBatch,
    logprobs: list[Floats],
    before: list[Floats] | None = None,
    reference: list[Floats] | None = None,
) -> tuple[float, list[Floats]]:
    """Loss of a micro-batch and its gradient by datum: the mean over its data."""
    total, gradients = 0.0, []
    for i, d in enumerate(micro.data):
        one = datum_loss(
            spec,
            step,
            d,
            micro.scale,
            logprobs[i],
            before[i] if before else None,
            reference[i] if reference else None,
        )
        total += one.loss
        gradients.append(one.gradient / len(micro.data))
    return total / len(micro.data), gradients
