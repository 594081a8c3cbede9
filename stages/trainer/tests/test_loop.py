"""Killed anywhere: every step is applied once, and answered."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sluice_trainer.arrays import ContractError, Step, step_from
from sluice_trainer.ledger import Ledger, LedgerError
from sluice_trainer.loop import Endpoint, Figures, Trainer, annotation
from sluice_trainer.proto import training_pb2 as pb
from tests.conftest import records

ONE = ([5, 6, 7], [0, 1], [0, -0.5], 2.0)


class Killed(BaseException):
    """The process dies here."""


class Fuse:
    """Burns down by one at each point; the process dies when it has burnt."""

    def __init__(self, points: int) -> None:
        self.left = points

    def point(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


class CountingBackend:
    """Its weights are the list of the steps that were applied."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse, self.applied = fuse, list[list[int]]()

    def train(self, step: Step) -> Figures:
        self.fuse.point()
        self.applied.append([step.incarnation, step.number])
        self.fuse.point()
        data = [d for m in step.micro_batches for d in m.data]
        return Figures(
            loss=float(step.number),
            extra={"mine": 1.0},
            annotations=[annotation(d, np.full(len(d) + 3, -step.number)) for d in data],
        )

    def save(self, folder: Path) -> None:
        self.fuse.point()
        (folder / "weights.json").write_text(json.dumps(self.applied))
        self.fuse.point()

    def load(self, folder: Path) -> None:
        self.applied = json.loads((folder / "weights.json").read_text())

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        assert (folder / "weights.json").exists()
        self.fuse.point()
        return Endpoint(model=folder.name)


class Log:
    """The topics: what is written outlives the process."""

    def __init__(self) -> None:
        self.reports: list[pb.TrainerReport] = []
        self.updates: list[pb.PolicyUpdate] = []
        self.annotations: list[pb.TrainerAnnotation] = []
        self.fuse = Fuse(0)

    def report(self, m: pb.TrainerReport) -> None:
        self.fuse.point()
        self.reports.append(m)

    def annotate(self, m: pb.TrainerAnnotation) -> None:
        self.fuse.point()
        self.annotations.append(m)

    def update(self, m: pb.PolicyUpdate) -> None:
        self.fuse.point()
        self.updates.append(m)
        self.fuse.point()


def steps() -> list[Step]:
    """Three steps, the second with nothing to train on; then the trainer's operator rolled
    back, and steps 2 and 3 were made again. Step i is read up to offset i."""
    made = []
    for offset, (incarnation, number, empty) in enumerate(
        [(0, 1, False), (0, 2, True), (0, 3, False), (1, 2, False), (1, 3, False)]
    ):
        batch, micro = records([] if empty else [[ONE]], n=1, incarnation=incarnation, step=number)
        made.append(step_from(batch, micro, {0: offset + 1}))
    return made


def live(folder: Path, log: Log, fuse: Fuse) -> Trainer:
    log.fuse = fuse
    trainer = Trainer("r", CountingBackend(fuse), Ledger(folder, "r", keep=2), log, annotate=True)
    trainer.start()
    trainer.run(steps()[trainer.resume.get(0, 0) :])
    return trainer


@pytest.mark.parametrize("between", range(1, 14))
def test_killed_at_any_moment(tmp_path: Path, between: int) -> None:
    """The process dies at every point in turn, `between` points after each start."""
    log = Log()
    # Lives of `between` points can be too short to finish any step: they grow.
    for life in range(60):
        try:
            trainer = live(tmp_path, log, Fuse(between + life))
        except Killed:
            continue
        break
    else:
        pytest.fail("never came to the end")
    backend = trainer.backend
    assert isinstance(backend, CountingBackend)
    assert backend.applied == [[0, 1], [0, 3], [1, 2], [1, 3]]
    answers = {}
    for u in log.updates:
        said = (u.policy_version, u.trained, u.model)
        assert answers.setdefault((u.incarnation, u.step), said) == said, "two different answers"
    assert {k: v[:2] for k, v in answers.items()} == {
        (0, 1): (1, True),
        (0, 2): (1, False),
        (0, 3): (2, True),
        (1, 2): (3, True),
        (1, 3): (4, True),
    }
    assert {(r.incarnation, r.step) for r in log.reports} == set(answers)
    assert all(r.extra["mine"] == 1 for r in log.reports if not r.skipped)
    # Every trained step is annotated, at least once and always as the same.
    assert {
        (a.incarnation, a.step): np.frombuffer(a.logprobs, "<f4").tolist() for a in log.annotations
    } == {k: [-float(k[1])] for k in answers if answers[k][1]}
    assert all(
        np.frombuffer(a.behaviour_logprobs, "<f4").tolist() == [-0.5] for a in log.annotations
    )
    versions = {(a.incarnation, a.step, a.policy_version) for a in log.annotations}
    assert versions == {(i, n, v - 1) for (i, n), (v, t, _) in answers.items() if t}
    # Answers come in the order of the steps, repeats besides.
    order = [(u.incarnation, u.step) for u in log.updates]
    assert order == sorted(order)
    assert len(Ledger(tmp_path, "r").all()) == 2
    assert not list(tmp_path.glob("*.tmp"))


def test_a_step_that_comes_again_is_answered_again_and_not_trained(tmp_path: Path) -> None:
    log = Log()
    trainer = live(tmp_path, log, Fuse(0))
    before = len(log.updates)
    trainer.step(steps()[-1])
    assert len(log.updates) == before + 1
    assert log.updates[-1].policy_version == log.updates[-2].policy_version
    trainer.step(steps()[0])
    assert len(log.updates) == before + 1, "a step before the last one was answered"
    batch, micro = records([[ONE]], run="other")
    with pytest.raises(ContractError, match="other"):
        trainer.step(step_from(batch, micro))


def test_another_batch_under_a_number_that_was_trained_is_refused(tmp_path: Path) -> None:
    trainer = live(tmp_path, Log(), Fuse(0))
    other = ([5, 6, 8], [0, 1], [0, -0.5], 2.0)
    made_anew = step_from(*records([[other]], n=1, incarnation=1, step=3))
    with pytest.raises(ContractError, match="made anew under old numbers"):
        trainer.step(made_anew)
    assert trainer.entry is not None
    assert trainer.entry.digest == steps()[-1].digest.hex()


def test_a_foreign_or_broken_ledger_is_refused(tmp_path: Path) -> None:
    live(tmp_path, Log(), Fuse(0))
    with pytest.raises(LedgerError, match="of run 'r', not 'q'"):
        Trainer("q", CountingBackend(Fuse(0)), Ledger(tmp_path, "q"), Log()).start()
    (Ledger(tmp_path, "r").all()[-1] / "ledger.json").write_text("{")
    with pytest.raises(LedgerError, match=r"ledger\.json"):
        Trainer("r", CountingBackend(Fuse(0)), Ledger(tmp_path, "r"), Log()).start()
    with pytest.raises(LedgerError, match="keep 0"):
        Ledger(tmp_path, "r", keep=0)
