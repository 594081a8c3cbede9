"""Trains step by step: never a step twice, never one left out, whatever dies.

For each step, in this order: train, checkpoint (weights and ledger as one), hand the
weights to who samples, report, update. Before the checkpoint nothing has happened; after
it, everything can be said again from the ledger. A step that the ledger has is answered
again and not trained; a step with nothing to train on is answered without a call of the
backend.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from sluice_trainer.arrays import ContractError, Step
from sluice_trainer.ledger import Entry, Ledger
from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.publisher import Publisher

log = logging.getLogger("sluice_trainer")


@dataclass(frozen=True)
class Endpoint:
    """Where a policy is sampled; empty: where it was."""

    inference_url: str = ""
    model: str = ""


@dataclass
class Figures:
    """What a step's training was like. None is 'not measured'."""

    loss: float = 0.0
    ratio_mean: float = 1.0
    ratio_max: float = 1.0
    #: Greatest |ratio - 1| before the first optimiser step: 0 where data are on-policy and
    #: sampler and trainer agree. The cheapest alarm there is.
    ratio_off: float = 0.0
    clip_fraction_low: float = 0.0
    clip_fraction_high: float = 0.0
    entropy: float = 0.0
    gradient_norm: float = 0.0
    extra: dict[str, float] = field(default_factory=dict)


class Backend(Protocol):
    """What trains. It keeps weights and optimiser state in memory between the calls."""

    def train(self, step: Step) -> Figures:
        """One optimiser step over all micro-batches of a step that has some."""
        ...

    def save(self, folder: Path) -> None:
        """Writes weights and optimiser state into an empty folder."""
        ...

    def load(self, folder: Path) -> None:
        """Takes them from a folder that save wrote."""
        ...

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        """Makes the sampler use the weights of a checkpoint. It may be called again with the
        same ones after a crash."""
        ...


class Trainer:
    """One run's trainer."""

    def __init__(self, run_id: str, backend: Backend, ledger: Ledger, publisher: Publisher) -> None:
        self.run_id, self.backend, self.ledger, self.publisher = run_id, backend, ledger, publisher
        self.entry: Entry | None = None

    @property
    def resume(self) -> dict[int, int]:
        """Where to go on reading."""
        return {int(p): o for p, o in self.entry.resume.items()} if self.entry else {}

    def start(self) -> None:
        """Goes on from the last checkpoint, and says again what may not have been said."""
        last = self.ledger.last()
        if last is None:
            return
        self.entry, folder = last
        self.backend.load(folder)
        log.info("going on from %s, policy version %d", folder, self.entry.policy_version)
        self._answer(self.entry, folder)

    def run(self, steps: Iterable[Step]) -> None:
        """Trains every step that comes."""
        for step in steps:
            self.step(step)

    def step(self, step: Step) -> None:
        """Trains and answers one step."""
        if step.run_id != self.run_id:
            raise ContractError(f"a step of run {step.run_id!r}, this trainer's is {self.run_id!r}")
        place = (step.incarnation, step.number)
        last = self.entry
        if last is not None and place == last.place:
            log.info("step %d was trained before: same answer", step.number)
            self._answer(last, self.ledger.folder / last.name)
            return
        if last is not None and place < last.place:
            log.warning(
                "step %d of incarnation %d lies before %s: not trained, not answered",
                step.number,
                step.incarnation,
                last.name,
            )
            return
        version = last.policy_version if last else 0
        began = time.monotonic()
        trained = step.data > 0
        figures = self.backend.train(step) if trained else Figures()
        report = {
            **{k: v for k, v in vars(figures).items() if k != "extra"},
            **{f"extra.{k}": v for k, v in figures.extra.items()},
            "data": step.data,
            "loss_tokens": step.loss_tokens,
            "duration_ms": 1000 * (time.monotonic() - began),
        }
        entry = Entry(
            run_id=self.run_id,
            incarnation=step.incarnation,
            step=step.number,
            policy_version=version + 1 if trained else version,
            trained=trained,
            report=report,
            resume={str(p): o for p, o in step.resume.items()},
        )
        # Nothing changed: the files of the checkpoint before are linked, not written again.
        same = self.ledger.folder / last.name if last and not trained else None
        folder = self.ledger.write(entry, self.backend.save, same)
        self.entry = entry
        self._answer(entry, folder)
        log.info(
            "step %d answered: version %d, loss %.6g, ratio off by %.2g",
            step.number,
            entry.policy_version,
            figures.loss,
            figures.ratio_off,
        )

    def _answer(self, entry: Entry, folder: Path) -> None:
        endpoint = self.backend.hand_over(folder, entry.policy_version)
        now = Timestamp()
        now.GetCurrentTime()
        r = dict(entry.report)
        extra = {k.removeprefix("extra."): v for k, v in r.items() if k.startswith("extra.")}
        extra["ratio_off"] = r.get("ratio_off", 0.0)
        self.publisher.report(
            pb.TrainerReport(
                run_id=entry.run_id,
                incarnation=entry.incarnation,
                step=entry.step,
                policy_version=entry.policy_version,
                skipped=not entry.trained,
                loss=r["loss"],
                ratio_mean=r["ratio_mean"],
                ratio_max=r["ratio_max"],
                clip_fraction_low=r["clip_fraction_low"],
                clip_fraction_high=r["clip_fraction_high"],
                entropy=r["entropy"],
                gradient_norm=r["gradient_norm"],
                data=int(r["data"]),
                loss_tokens=int(r["loss_tokens"]),
                duration_ms=r["duration_ms"],
                extra=extra,
                reported_at=now,
            )
        )
        self.publisher.update(
            pb.PolicyUpdate(
                run_id=entry.run_id,
                incarnation=entry.incarnation,
                step=entry.step,
                policy_version=entry.policy_version,
                trained=entry.trained,
                inference_url=endpoint.inference_url,
                model=endpoint.model,
                published_at=now,
            )
        )
