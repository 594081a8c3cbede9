"""Which loss, as a value that can be written down."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sluice_trainer.corrections import Correction, MaskOutside, Truncate

__all__ = ["KINDS", "LossSpec", "MaskOutside", "Truncate"]

KINDS = ("ppo", "importance_sampling", "cispo", "gspo")


@dataclass(frozen=True)
class LossSpec:
    """A loss with its options. The clip bounds and the reduction come with each step."""

    kind: str = "ppo"
    #: Weight of the KL estimate; above 0 it needs the reference's logprobs.
    kl: float = 0.0
    #: Needs the trainer's own logprobs of before the step. None: what the batch asks for.
    correction: Correction | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"loss {self.kind!r}: want one of {', '.join(KINDS)}")
        if not (math.isfinite(self.kl) and self.kl >= 0):
            raise ValueError(f"kl {self.kl}: want a number, at least 0")

    def asked(self, correction: Correction | None) -> LossSpec:
        """This loss with the correction that a batch asks for, where it names none itself."""
        return self if self.correction is not None else replace(self, correction=correction)
