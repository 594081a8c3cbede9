"""Which loss, as a value that can be written down."""

from __future__ import annotations

import math
from dataclasses import dataclass

KINDS = ("ppo", "importance_sampling", "cispo", "gspo")


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


@dataclass(frozen=True)
class LossSpec:
    """A loss with its options. The clip bounds and the reduction come with each step."""

    kind: str = "ppo"
    #: Weight of the KL estimate; above 0 it needs the reference's logprobs.
    kl: float = 0.0
    #: Needs the trainer's own logprobs of before the step.
    correction: Truncate | MaskOutside | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"loss {self.kind!r}: want one of {', '.join(KINDS)}")
        if not (math.isfinite(self.kl) and self.kl >= 0):
            raise ValueError(f"kl {self.kl}: want a number, at least 0")
