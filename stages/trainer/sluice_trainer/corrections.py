"""Importance sampling between the policy as the sampler computes it and as the trainer does.

With q the trainer's own logprob of before the step and b the behaviour logprob, w = exp(q - b)
by token, or their product over a datum's sampled tokens (Yao et al. 2025).
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Truncate:
    """Weigh by the sampler-to-trainer ratio, at most `most`."""

    most: float = 2.0
    by_sequence: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.most) and self.most > 0):
            raise ValueError(f"truncation at {self.most}: want a number above 0")


@dataclass(frozen=True)
class MaskOutside:
    """Weigh by the sampler-to-trainer ratio, by 0 where it lies outside of the bounds."""

    low: float = 0.5
    high: float = 2.0
    by_sequence: bool = False

    def __post_init__(self) -> None:
        if not (0 <= self.low < 1 < self.high and math.isfinite(self.high)):
            raise ValueError(f"mask outside {self.low} to {self.high}: want bounds around 1")


Correction = Truncate | MaskOutside
