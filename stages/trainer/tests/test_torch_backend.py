"""A small model of torch, really trained. Skips where torch is not installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice_trainer.arrays import step_from
from sluice_trainer.losses import LossSpec, Truncate
from sluice_trainer.losses.numpy_reference import micro_batch_loss
from tests.conftest import random_data, records

torch = pytest.importorskip("torch", reason="torch is not installed")

from sluice_trainer.backends.torch import TorchBackend  # noqa: E402

VOCABULARY, WIDTH = 11, 8


def model(seed: int = 0) -> Any:
    """Sees the mean of all tokens so far: position matters, the future does not."""

    class Small(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
            self.out = torch.nn.Linear(WIDTH, VOCABULARY)

        def forward(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            steps = torch.arange(1, tokens.shape[1] + 1)[None, :, None]
            return self.out(torch.tanh(x.cumsum(1) / steps))

    torch.manual_seed(seed)
    return Small()


def logprobs(m: Any, tokens: list[int]) -> list[float]:
    with torch.no_grad():
        every = torch.log_softmax(m(torch.tensor([tokens[:-1]])), -1)[0]
    return [float(every[i, t]) for i, t in enumerate(tokens[1:])]


def test_loss_and_step_are_those_of_the_reference() -> None:
    m = model()
    data = random_data(np.random.default_rng(1), 5, VOCABULARY)
    step = step_from(*records([data[:2], data[2:]], n=7))
    want, every = 0.0, list[Any]()
    for micro in step.micro_batches:
        p = [np.array(logprobs(m, [int(d.inputs[0]), *d.targets.tolist()])) for d in micro.data]
        want += micro_batch_loss(LossSpec(), step, micro, p)[0]
        every += p
    before = [x.detach().clone() for x in m.parameters()]
    b = TorchBackend(m, torch.optim.SGD(m.parameters(), 0.1))
    figures = b.train(step)
    assert figures.loss == pytest.approx(want, rel=1e-4)
    data_of = [d for micro in step.micro_batches for d in micro.data]
    for d, a, p in zip(data_of, figures.annotations, every, strict=True):
        assert a.logprobs == pytest.approx(p[d.mask], abs=1e-5)
        assert (a.entropy > 0).all()
    moved = sum(float((x - y).norm() ** 2) for x, y in zip(m.parameters(), before, strict=True))
    assert moved**0.5 == pytest.approx(0.1 * figures.gradient_norm, rel=1e-3)


def test_on_policy_the_ratio_is_one_and_training_makes_what_was_paid_likelier() -> None:
    m = model()
    b = TorchBackend(
        m, torch.optim.Adam(m.parameters(), 0.05), LossSpec(correction=Truncate()), max_norm=1.0
    )
    good, bad = [1, 2, 3], [1, 2, 4]
    begun = logprobs(m, good)[1] - logprobs(m, bad)[1]
    for number in range(1, 21):
        data = [(t, [0, 1], logprobs(m, t), a) for t, a in ((good, 1.0), (bad, -1.0))]
        figures = b.train(step_from(*records([data], step=number)))
        assert figures.ratio_off == pytest.approx(0, abs=1e-5)
        assert figures.extra["logprob_difference_mean"] == pytest.approx(0, abs=1e-5)
    assert logprobs(m, good)[1] - logprobs(m, bad)[1] > begun + 1


def test_what_was_saved_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    step = step_from(*records([random_data(np.random.default_rng(3), 6, VOCABULARY)]))
    first = model()
    a = TorchBackend(first, torch.optim.Adam(first.parameters(), 0.1))
    a.train(step)
    a.save(tmp_path)
    second = model(9)
    b = TorchBackend(second, torch.optim.Adam(second.parameters(), 0.1))
    b.load(tmp_path)
    assert a.train(step).loss == b.train(step).loss
    for x, y in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(x, y)


def test_kl_needs_a_reference_and_pulls_towards_it() -> None:
    m = model()
    with pytest.raises(ValueError, match="reference"):
        TorchBackend(m, torch.optim.SGD(m.parameters(), 0.1), LossSpec(kl=1.0))
    data = [([1, 2, 3], [0, 1], logprobs(m, [1, 2, 3]), 0.0)]
    step = step_from(*records([data]))
    same = TorchBackend(
        m, torch.optim.SGD(m.parameters(), 0.1), LossSpec(kl=1.0), reference=model()
    )
    assert same.train(step).gradient_norm == pytest.approx(0, abs=1e-6)
    other = TorchBackend(
        m, torch.optim.SGD(m.parameters(), 0.1), LossSpec(kl=1.0), reference=model(5)
    )
    assert other.train(step).gradient_norm > 1e-3
