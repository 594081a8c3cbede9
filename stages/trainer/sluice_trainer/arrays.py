"""What a trainer reads, as numpy arrays.

A `Step` is one optimiser step's worth of data: its micro-batches, each with its data. A
`Datum` is one trajectory of T tokens as arrays of T-1 values, shifted by one: value i
speaks of `targets[i]`, the token that follows `inputs[i]`.

Everything is checked as it is read: a record that breaks the contract raises
`ContractError`, with its place, rather than reaching an optimiser.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sluice_trainer.corrections import Correction, MaskOutside, Truncate
from sluice_trainer.custody import micro_batch_digest, step_digest
from sluice_trainer.proto import training_pb2 as pb


class ContractError(ValueError):
    """A record that is not what schemas/TRAINER.md says it is."""


class TokenReduction(enum.Enum):
    """How the loss of a datum comes from those of its tokens."""

    SUM = "sum"
    MEAN = "mean"


@dataclass(frozen=True)
class Datum:
    """One trajectory. The arrays have equal lengths and cannot be written to."""

    slot: int
    sample_index: int
    copy: int
    #: Token ids, the last one left out.
    inputs: NDArray[np.uint32]
    #: Token ids, the first one left out.
    targets: NDArray[np.uint32]
    #: Natural logarithm of the target's probability under the policy that sampled it; 0
    #: where the mask is False.
    logprobs: NDArray[np.float32]
    #: Advantage times the micro-batch's scale; 0 where the mask is False.
    advantages: NDArray[np.float32]
    #: True on the tokens that the policy sampled: only they are trained on.
    mask: NDArray[np.bool_]
    policy_version_min: int
    policy_version_max: int

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class MicroBatch:
    """Data that fit together through the model."""

    index: int
    data: Sequence[Datum]
    #: (data in this micro-batch) / N. It is already in the advantages.
    scale: float

    @property
    def padded_tokens(self) -> int:
        """Data times the longest of them."""
        return len(self.data) * max((len(d) for d in self.data), default=0)


@dataclass(frozen=True)
class Step:
    """All that one optimiser step is made of, in the order of the micro-batches' index."""

    run_id: str
    incarnation: int
    number: int
    #: N: the graded members over which the gradient is a mean.
    n: int
    clip_low: float
    clip_high: float
    reduction: TokenReduction
    policy_version_min: int
    policy_version_max: int
    micro_batches: Sequence[MicroBatch]
    #: Of all that is trained on: the batch's name. See sluice_trainer.custody.
    digest: bytes = b""
    #: How to weigh tokens on whose logprobs sampler and trainer differ, as the batch asks.
    correction: Correction | None = None
    #: Where to go on reading when this step is done: offset by partition.
    resume: dict[int, int] = field(default_factory=dict, compare=False)

    @property
    def data(self) -> int:
        return sum(len(m.data) for m in self.micro_batches)

    @property
    def loss_tokens(self) -> int:
        return sum(int(d.mask.sum()) for m in self.micro_batches for d in m.data)

    def part(self, rank: int, world: int) -> Sequence[MicroBatch]:
        """The micro-batches of one of `world` data-parallel processes.

        It depends on the step alone, so that a restart with other processes reads the
        same. The parts' gradients, summed, are the step's.
        """
        if not 0 <= rank < world:
            raise ValueError(f"rank {rank} of {world}")
        return [m for m in self.micro_batches if m.index % world == rank]


def _array(raw: bytes, dtype: str, length: int, what: str) -> NDArray[np.generic]:
    size = np.dtype(dtype).itemsize
    if len(raw) != length * size:
        raise ContractError(f"{what} has {len(raw)} bytes, want {length} values of {size} bytes")
    return np.frombuffer(raw, dtype)


def datum_from(m: pb.Datum, where: str = "datum") -> Datum:
    """Reads and checks one datum."""
    where = f"{where} (slot {m.slot}, sample {m.sample_index})"
    n = len(m.loss_mask)
    raw_mask = _array(m.loss_mask, "u1", n, f"{where}: loss_mask")
    if n and int(raw_mask.max()) > 1:
        raise ContractError(f"{where}: loss_mask has a byte that is neither 0 nor 1")
    mask = raw_mask.astype(np.bool_)
    mask.flags.writeable = False
    d = Datum(
        slot=m.slot,
        sample_index=m.sample_index,
        copy=m.copy,
        inputs=_array(m.input_tokens, "<u4", n, f"{where}: input_tokens"),  # type: ignore[arg-type]
        targets=_array(m.target_tokens, "<u4", n, f"{where}: target_tokens"),  # type: ignore[arg-type]
        logprobs=_array(m.behaviour_logprobs, "<f4", n, f"{where}: behaviour_logprobs"),  # type: ignore[arg-type]
        advantages=_array(m.advantages, "<f4", n, f"{where}: advantages"),  # type: ignore[arg-type]
        mask=mask,
        policy_version_min=m.policy_version_min,
        policy_version_max=m.policy_version_max,
    )
    if not mask.any():
        raise ContractError(f"{where}: no token to train on")
    if not np.array_equal(d.inputs[1:], d.targets[:-1]):
        raise ContractError(f"{where}: target_tokens is not input_tokens shifted by one")
    for name, values in (("behaviour_logprobs", d.logprobs), ("advantages", d.advantages)):
        if not np.isfinite(values).all():
            raise ContractError(f"{where}: {name} has a value that is not finite")
        if values[~mask].any():
            raise ContractError(f"{where}: {name} is not 0 where loss_mask is 0")
    if (d.logprobs > 0).any():
        raise ContractError(f"{where}: behaviour_logprobs has a value above 0")
    return d


_REDUCTIONS = {
    pb.TOKEN_REDUCTION_SUM: TokenReduction.SUM,
    pb.TOKEN_REDUCTION_MEAN: TokenReduction.MEAN,
}


def _correction(batch: pb.StepBatch, where: str) -> Correction | None:
    c = batch.correction
    if not batch.HasField("correction"):
        return None
    try:
        if c.kind == pb.CORRECTION_KIND_TRUNCATE:
            return Truncate(c.high, c.by_sequence)
        if c.kind == pb.CORRECTION_KIND_MASK:
            return MaskOutside(c.low, c.high, c.by_sequence)
    except ValueError as e:
        raise ContractError(f"{where}: correction: {e}") from e
    raise ContractError(f"{where}: correction {c.kind} is not known")


def step_from(
    batch: pb.StepBatch, micro: Sequence[pb.MicroBatch], resume: dict[int, int] | None = None
) -> Step:
    """Reads and checks a step: its StepBatch, and its micro-batches in any order."""
    where = f"{batch.run_id}.{batch.incarnation}/{batch.step}"
    if batch.token_reduction not in _REDUCTIONS:
        raise ContractError(f"{where}: token reduction {batch.token_reduction} is not known")
    if not 0 < batch.clip_low <= 1 <= batch.clip_high:
        raise ContractError(f"{where}: clip bounds {batch.clip_low} and {batch.clip_high}")
    ordered = sorted(micro, key=lambda m: m.index)
    found = [m.index for m in ordered]
    if found != list(range(batch.micro_batches)):
        raise ContractError(f"{where}: micro-batches {found}, want 0 to {batch.micro_batches - 1}")
    read = []
    for m in ordered:
        at = f"{where} micro-batch {m.index}"
        if (m.run_id, m.incarnation, m.step) != (batch.run_id, batch.incarnation, batch.step):
            raise ContractError(f"{at} is of {m.run_id}.{m.incarnation}/{m.step}")
        if not m.data:
            raise ContractError(f"{at} is empty")
        if abs(m.scale * batch.n - len(m.data)) > 1e-6 * len(m.data):
            raise ContractError(f"{at}: scale {m.scale} is not {len(m.data)} data / N = {batch.n}")
        if (digest := micro_batch_digest(m)) != m.digest:
            raise ContractError(
                f"{at} bears digest {m.digest.hex()[:16] or 'none'}, its content has "
                f"{digest.hex()[:16]}: it is not what the batcher wrote"
            )
        read.append(MicroBatch(m.index, [datum_from(d, at) for d in m.data], m.scale))
    if (digest := step_digest(batch, [m.digest for m in ordered])) != batch.digest:
        raise ContractError(
            f"{where} bears digest {batch.digest.hex()[:16] or 'none'}, its content has "
            f"{digest.hex()[:16]}: it is not what the batcher wrote"
        )
    step = Step(
        run_id=batch.run_id,
        incarnation=batch.incarnation,
        number=batch.step,
        n=batch.n,
        clip_low=batch.clip_low,
        clip_high=batch.clip_high,
        reduction=_REDUCTIONS[batch.token_reduction],
        policy_version_min=batch.policy_version_min,
        policy_version_max=batch.policy_version_max,
        micro_batches=read,
        digest=digest,
        correction=_correction(batch, where),
        resume=resume or {},
    )
    if step.data != batch.data or step.loss_tokens != batch.loss_tokens:
        raise ContractError(
            f"{where}: {step.data} data with {step.loss_tokens} loss tokens, "
            f"announced {batch.data} with {batch.loss_tokens}"
        )
    return step
