"""Digests of steps: what they are over stands at StepBatch.digest in training.proto.

They find what goes wrong between the batcher and the trainer and in storage, and they are
the name of a batch: a trainer that keeps the digest beside the weights knows which batch
was applied to them.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from sluice_trainer.proto import training_pb2 as pb


def _counted(values: bytes, size: int = 1) -> bytes:
    return struct.pack("<Q", len(values) // size) + values


def micro_batch_digest(m: pb.MicroBatch) -> bytes:
    h = hashlib.sha256(_counted(b"sluice micro-batch 1") + _counted(m.run_id.encode()))
    h.update(struct.pack("<IQI", m.incarnation, m.step, m.index))
    h.update(struct.pack("<dddI", m.scale, m.clip_low, m.clip_high, m.token_reduction))
    h.update(struct.pack("<Q", len(m.data)))
    for d in m.data:
        h.update(struct.pack("<IIQ", d.slot, d.sample_index, d.copy))
        for values in (d.input_tokens, d.target_tokens, d.behaviour_logprobs, d.advantages):
            h.update(_counted(values, 4))
        h.update(_counted(d.loss_mask))
        h.update(struct.pack("<II", d.policy_version_min, d.policy_version_max))
    return h.digest()


def step_digest(b: pb.StepBatch, micro_digests: Sequence[bytes]) -> bytes:
    """Of a step and the digests of its micro-batches, by index."""
    h = hashlib.sha256(_counted(b"sluice step 1") + _counted(b.run_id.encode()))
    h.update(struct.pack("<IQI", b.incarnation, b.step, b.n))
    h.update(struct.pack("<ddI", b.clip_low, b.clip_high, b.token_reduction))
    h.update(struct.pack("<II", b.policy_version_min, b.policy_version_max))
    c = b.correction
    h.update(struct.pack("<I?dd", c.kind, c.by_sequence, c.low, c.high))
    h.update(struct.pack("<Q", len(micro_digests)))
    for digest in micro_digests:
        h.update(digest)
    return h.digest()


def seal(b: pb.StepBatch, micro: Sequence[pb.MicroBatch]) -> None:
    """Gives a step and its micro-batches, by index, their digests, as the batcher does."""
    for m in micro:
        m.digest = micro_batch_digest(m)
    b.digest = step_digest(b, [m.digest for m in micro])
