"""Digests: the same as the batcher's, and every change is seen."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice_trainer.arrays import ContractError, step_from
from sluice_trainer.corrections import MaskOutside
from sluice_trainer.custody import micro_batch_digest, seal, step_digest
from sluice_trainer.proto import training_pb2 as pb
from tests.conftest import records

#: Written by the Go tests of the same digests.
GOLDEN = Path(__file__).parents[3] / "schemas" / "custody" / "testdata" / "step.json"
ONE = ([5, 6, 7], [0, 1], [0, -0.5], 2.0)


def test_the_batcher_s_digests_are_reckoned_here_too() -> None:
    golden = json.loads(GOLDEN.read_text())
    batch = pb.StepBatch.FromString(base64.b64decode(golden["step_batch"]))
    micro = [pb.MicroBatch.FromString(base64.b64decode(m)) for m in golden["micro_batches"]]
    assert [micro_batch_digest(m).hex() for m in micro] == golden["micro_digests"]
    assert step_digest(batch, [m.digest for m in micro]).hex() == golden["step_digest"]
    step = step_from(batch, micro)
    assert step.digest.hex() == golden["step_digest"]
    assert step.correction == MaskOutside(0.5, 2, by_sequence=True)


def _one_token(_: pb.StepBatch, m: pb.MicroBatch) -> None:
    raw = bytearray(m.data[0].input_tokens)
    raw[0] ^= 1
    m.data[0].input_tokens = bytes(raw)


def _none(b: pb.StepBatch, _: pb.MicroBatch) -> None:
    b.digest = b""


def _bounds(b: pb.StepBatch, _: pb.MicroBatch) -> None:
    b.clip_high = 1.2


def _correction(b: pb.StepBatch, _: pb.MicroBatch) -> None:
    b.correction.kind = pb.CORRECTION_KIND_TRUNCATE
    b.correction.high = 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_one_token, "micro-batch 0 bears digest"),
        (_none, "bears digest none"),
        (_bounds, "bears digest"),
        (_correction, "bears digest"),
    ],
)
def test_what_the_batcher_did_not_write_is_refused(
    change: Callable[[pb.StepBatch, pb.MicroBatch], None], says: str
) -> None:
    batch, micro = records([[ONE]])
    change(batch, micro[0])
    with pytest.raises(ContractError, match=says):
        step_from(batch, micro)


def test_a_correction_that_is_not_known_is_refused() -> None:
    batch, micro = records([[ONE]])
    batch.correction.kind = 9  # type: ignore[assignment]
    seal(batch, micro)
    with pytest.raises(ContractError, match="correction 9 is not known"):
        step_from(batch, micro)
    batch.correction.kind = pb.CORRECTION_KIND_MASK
    batch.correction.low, batch.correction.high = 2, 1
    seal(batch, micro)
    with pytest.raises(ContractError, match="want bounds around 1"):
        step_from(batch, micro)
