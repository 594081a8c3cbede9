"""Steps as folders, for a trainer that reads those."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from sluice_trainer.arrays import Step
from sluice_trainer.backends.files import FilesBackend, StoppedError, step_name, write_step


def test_ranks_together_hold_the_step(tmp_path: Path, small_step: Step) -> None:
    folder = write_step(tmp_path, small_step, world=3)
    assert (folder / "READY").exists()
    inputs, lengths, micro = [], [], []
    for rank in range(3):
        with np.load(folder / f"rank_{rank}.npz") as f:
            inputs.append(f["inputs"])
            lengths += f["lengths"].tolist()
            micro += f["micro_batch"].tolist()
            assert int(f["n"]) == 7
            assert f["clip"].tolist() == [0.8, 1.28]
    assert lengths == [len(d) for m in small_step.micro_batches for d in m.data]
    assert micro == [0, 0, 0, 1, 1]
    want = np.concatenate([d.inputs for m in small_step.micro_batches for d in m.data])
    assert np.concatenate(inputs).tolist() == want.tolist()
    assert not list(tmp_path.glob("*.tmp"))
    # Written again after a crash, it is left as it is: it may be being read.
    before = (folder / "rank_0.npz").stat().st_mtime_ns
    assert write_step(tmp_path, small_step, world=3) == folder
    assert (folder / "rank_0.npz").stat().st_mtime_ns == before


def test_weights_come_back_with_their_figures(tmp_path: Path, small_step: Step) -> None:
    backend = FilesBackend(tmp_path / "out", tmp_path / "weights", poll=0.01)

    def other_side() -> None:
        while not (tmp_path / "out" / step_name(small_step) / "READY").exists():
            time.sleep(0.01)
        mine = tmp_path / "weights" / step_name(small_step)
        mine.mkdir(parents=True)
        (mine / "figures.json").write_text('{"loss": 0.5, "tokens_per_second": 10}')
        (mine / "STABLE").write_text("")

    thread = threading.Thread(target=other_side)
    thread.start()
    figures = backend.train(small_step)
    thread.join()
    assert (figures.loss, figures.extra) == (0.5, {"tokens_per_second": 10.0})
    saved = tmp_path / "saved"
    saved.mkdir()
    backend.save(saved)
    again = FilesBackend(tmp_path / "out", tmp_path / "weights")
    again.load(saved)
    assert again.hand_over(saved, 1).model == str(tmp_path / "weights" / step_name(small_step))


def test_it_stops_when_told_to(tmp_path: Path, small_step: Step) -> None:
    backend = FilesBackend(tmp_path / "out", tmp_path / "weights", stop=lambda: True)
    with pytest.raises(StoppedError, match="STABLE has not come"):
        backend.train(small_step)
