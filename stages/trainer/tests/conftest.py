"""Batches by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sluice_trainer.arrays import Step, step_from
from sluice_trainer.custody import seal
from sluice_trainer.proto import training_pb2 as pb


def datum(
    tokens: list[int], mask: list[int], logprobs: list[float], advantage: float, sample: int = 0
) -> pb.Datum:
    """A datum of T tokens; mask and logprobs speak of the tokens but the first."""
    m = np.array(mask, bool)
    return pb.Datum(
        slot=0,
        sample_index=sample,
        copy=sample + 1,
        input_tokens=np.array(tokens[:-1], "<u4").tobytes(),
        target_tokens=np.array(tokens[1:], "<u4").tobytes(),
        behaviour_logprobs=np.where(m, np.array(logprobs), 0).astype("<f4").tobytes(),
        advantages=np.where(m, advantage, 0).astype("<f4").tobytes(),
        loss_mask=m.astype("u1").tobytes(),
        policy_version_min=1,
        policy_version_max=1,
    )


def records(
    packs: list[list[tuple[list[int], list[int], list[float], float]]],
    *,
    n: int | None = None,
    run: str = "r",
    incarnation: int = 0,
    step: int = 1,
    reduction: int = pb.TOKEN_REDUCTION_SUM,
) -> tuple[pb.StepBatch, list[pb.MicroBatch]]:
    """A step of micro-batches; the advantages are scaled here, as the batcher does."""
    data = sum(len(p) for p in packs)
    n = n or data
    micro, loss_tokens, sample = [], 0, 0
    for i, pack in enumerate(packs):
        scale = len(pack) / n
        built = []
        for tokens, mask, logprobs, advantage in pack:
            built.append(datum(tokens, mask, logprobs, advantage * scale, sample))
            loss_tokens += sum(mask)
            sample += 1
        micro.append(
            pb.MicroBatch(
                run_id=run,
                incarnation=incarnation,
                step=step,
                index=i,
                data=built,
                scale=scale,
                clip_low=0.8,
                clip_high=1.28,
                token_reduction=reduction,  # type: ignore[arg-type]
            )
        )
    batch = pb.StepBatch(
        run_id=run,
        incarnation=incarnation,
        step=step,
        micro_batches=len(packs),
        n=n,
        clip_low=0.8,
        clip_high=1.28,
        token_reduction=reduction,  # type: ignore[arg-type]
        data=data,
        loss_tokens=loss_tokens,
    )
    seal(batch, micro)
    return batch, micro


def random_data(
    rng: np.random.Generator, count: int, vocabulary: int = 11
) -> list[tuple[list[int], list[int], list[float], float]]:
    out = []
    for _ in range(count):
        length = int(rng.integers(3, 12))
        mask = [int(x) for x in rng.integers(0, 2, length - 1)]
        mask[int(rng.integers(0, length - 1))] = 1
        out.append(
            (
                [int(x) for x in rng.integers(0, vocabulary, length)],
                mask,
                [float(x) for x in -rng.uniform(0.01, 3, length - 1)],
                float(rng.normal()),
            )
        )
    return out


@pytest.fixture
def small_step() -> Step:
    rng = np.random.default_rng(7)
    data = random_data(rng, 5)
    return step_from(*records([data[:3], data[3:]], n=7))
