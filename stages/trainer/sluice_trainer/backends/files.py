"""For a trainer that reads folders: every step becomes one, and weights come back as one.

    OUT/step-INCARNATION-STEP/rank_R.npz   the micro-batches of data-parallel rank R
    OUT/step-INCARNATION-STEP/READY        written last: the folder is whole
    WEIGHTS/step-INCARNATION-STEP/STABLE   written by the other side when the weights of
                                           after that step lie beside it

A rank's file holds the data of its micro-batches one behind the other: `inputs`, `targets`,
`logprobs`, `advantages`, `mask` concatenated, `lengths` by datum, `micro_batch` by datum,
and the step's `n`, `clip` and `mean` (1: mean over tokens, 0: sum).
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sluice_trainer.arrays import Datum, Step, TokenReduction
from sluice_trainer.loop import Endpoint, Figures


class StoppedError(Exception):
    """The other side's weights did not come before the trainer was told to stop."""


def step_name(step: Step) -> str:
    return f"step-{step.incarnation:010d}-{step.number:020d}"


def write_step(out: Path, step: Step, world: int) -> Path:
    """Writes a step's folder, aside and renamed. One that is there is left as it is."""
    final = out / step_name(step)
    if (final / "READY").exists():
        return final
    half = out / (step_name(step) + ".tmp")
    if half.exists():
        shutil.rmtree(half)
    half.mkdir(parents=True)
    for rank in range(world):
        micro = step.part(rank, world)
        data: list[Datum] = [d for m in micro for d in m.data]

        def joined(name: str, dtype: str, data: list[Datum] = data) -> Any:
            parts = [getattr(d, name) for d in data]
            return np.concatenate(parts).astype(dtype) if parts else np.zeros(0, dtype)

        np.savez(
            half / f"rank_{rank}.npz",
            inputs=joined("inputs", "<u4"),
            targets=joined("targets", "<u4"),
            logprobs=joined("logprobs", "<f4"),
            advantages=joined("advantages", "<f4"),
            mask=joined("mask", "?"),
            lengths=np.array([len(d) for d in data], np.int64),
            micro_batch=np.array([m.index for m in micro for _ in m.data], np.int64),
            n=np.int64(step.n),
            clip=np.array([step.clip_low, step.clip_high]),
            mean=np.int64(step.reduction is TokenReduction.MEAN),
        )
    (half / "READY").write_text("")
    if final.exists():
        shutil.rmtree(final)
    os.rename(half, final)
    return final


class FilesBackend:
    """Hands steps over as folders and waits for the weights of after each."""

    def __init__(
        self,
        out: Path,
        weights: Path,
        *,
        world: int = 1,
        stop: Callable[[], bool] = lambda: False,
        poll: float = 0.5,
    ) -> None:
        if world < 1:
            raise ValueError(f"world {world}: at least one rank reads")
        self.out, self.weights, self.world, self.stop, self.poll = out, weights, world, stop, poll
        self.current: str = ""

    def train(self, step: Step) -> Figures:
        write_step(self.out, step, self.world)
        came = self.weights / step_name(step)
        while not (came / "STABLE").exists():
            if self.stop():
                raise StoppedError(f"{came / 'STABLE'} has not come")
            time.sleep(self.poll)
        self.current = str(came)
        figures = Figures()
        measured = came / "figures.json"
        if measured.exists():
            for name, value in json.loads(measured.read_text()).items():
                if name in vars(figures) and name != "extra":
                    setattr(figures, name, float(value))
                else:
                    figures.extra[name] = float(value)
        return figures

    def save(self, folder: Path) -> None:
        (folder / "weights.txt").write_text(self.current + "\n")

    def load(self, folder: Path) -> None:
        self.current = (folder / "weights.txt").read_text().strip()

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        return Endpoint(model=self.current)
