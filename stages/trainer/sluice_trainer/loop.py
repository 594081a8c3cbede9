"""Trains step by step: never a step twice, never one left out, whatever dies.

For each step, in this order: train, checkpoint (weights and ledger as one), hand the
weights to who samples, report, update. Before the checkpoint nothing has happened; after
it, everything can be said again from the ledger. A step that the ledger has is answered
again and not trained; a step with nothing to train on is answered without a call of the
backend.
"""

from __future__ import annotations

import logging
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray

from sluice_trainer.arrays import ContractError, Datum, Step
from sluice_trainer.ledger import Entry, Ledger
from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.publisher import Publisher

log = logging.getLogger("sluice_trainer")

Floats = NDArray[np.floating]
#: Beside a checkpoint's weights: the step's annotations, each behind its length.
_ANNOTATIONS = "annotations.bin"


@dataclass(frozen=True)
class Endpoint:
    """Where a policy is sampled; empty: where it was."""

    inference_url: str = ""
    model: str = ""


@dataclass(frozen=True)
class Annotation:
    """What the weights of before the update say of one datum's sampled tokens."""

    datum: Datum
    #: One for each token with mask True.
    logprobs: Floats
    #: Nats of the distribution that each is from; empty: not measured.
    entropy: Floats


def annotation(datum: Datum, logprobs: Floats, entropy: Floats | None = None) -> Annotation:
    """Takes the values of a datum's positions, padded or not, to its sampled tokens."""

    def at(values: Floats) -> Floats:
        return np.asarray(values, "<f4")[: len(datum)][datum.mask]

    return Annotation(datum, at(logprobs), np.zeros(0, "<f4") if entropy is None else at(entropy))


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
    #: What was computed of each token, where it is asked for.
    annotations: list[Annotation] = field(default_factory=list)


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
    """One run's trainer. With `annotate` it publishes what was computed of each token."""

    def __init__(
        self,
        run_id: str,
        backend: Backend,
        ledger: Ledger,
        publisher: Publisher,
        *,
        annotate: bool = False,
    ) -> None:
        self.run_id, self.backend, self.ledger, self.publisher = run_id, backend, ledger, publisher
        self.annotate = annotate
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
            if last.digest and step.digest.hex() != last.digest:
                raise ContractError(
                    f"step {step.number} of incarnation {step.incarnation} has digest "
                    f"{step.digest.hex()[:16]}, and the weights hold a step of that number with "
                    f"{last.digest[:16]}: the run was made anew under old numbers; begin the next "
                    "incarnation, or go back to a checkpoint before that step"
                )
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
            **{k: v for k, v in vars(figures).items() if k not in ("extra", "annotations")},
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
            digest=step.digest.hex(),
            report=report,
            resume={str(p): o for p, o in step.resume.items()},
        )
        # Nothing changed: the files of the checkpoint before are linked, not written again.
        same = self.ledger.folder / last.name if last and not trained else None

        def save(folder: Path) -> None:
            self.backend.save(folder)
            if self.annotate and figures.annotations:
                _write_annotations(folder / _ANNOTATIONS, step, version, figures.annotations)

        folder = self.ledger.write(entry, save, same, leave={_ANNOTATIONS})
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
        for m in _read_annotations(folder / _ANNOTATIONS) if self.annotate else ():
            self.publisher.annotate(m)
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


def _write_annotations(
    file: Path, step: Step, version: int, annotations: Iterable[Annotation]
) -> None:
    now = Timestamp()
    now.GetCurrentTime()
    with file.open("wb") as out:
        for a in annotations:
            raw = pb.TrainerAnnotation(
                run_id=step.run_id,
                incarnation=step.incarnation,
                step=step.number,
                slot=a.datum.slot,
                sample_index=a.datum.sample_index,
                copy=a.datum.copy,
                policy_version=version,
                logprobs=np.asarray(a.logprobs, "<f4").tobytes(),
                behaviour_logprobs=a.datum.logprobs[a.datum.mask].tobytes(),
                entropy=np.asarray(a.entropy, "<f4").tobytes(),
                annotated_at=now,
            ).SerializeToString()
            out.write(struct.pack("<Q", len(raw)) + raw)


def _read_annotations(file: Path) -> Iterator[pb.TrainerAnnotation]:
    if not file.exists():
        return
    with file.open("rb") as source:
        while size := source.read(8):
            yield pb.TrainerAnnotation.FromString(source.read(struct.unpack("<Q", size)[0]))
