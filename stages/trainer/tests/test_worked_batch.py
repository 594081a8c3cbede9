"""The batch in numbers of schemas/TRAINER.md."""

from __future__ import annotations

import numpy as np
import pytest

from sluice_trainer.arrays import step_from
from sluice_trainer.losses import LossSpec
from sluice_trainer.losses.numpy_reference import micro_batch_loss
from tests.conftest import records


def test_the_worked_batch_is_as_the_contract_says() -> None:
    ln = np.log
    data = [
        ([5, 6, 7, 8], [0, 1, 1], [0, ln(0.5), ln(0.25)], 2.0),
        ([5, 6, 9], [0, 1], [0, ln(0.5)], -2.0),
    ]
    step = step_from(*records([data], n=4))
    m = step.micro_batches[0]
    assert m.scale == 0.5
    assert [d.advantages.tolist() for d in m.data] == [[0, 1, 1], [0, -1]]
    now = [np.array([0, ln(0.75), ln(0.25)]), np.array([0, ln(0.5)])]
    loss, gradients = micro_batch_loss(LossSpec(), step, m, now)
    assert loss == pytest.approx(-0.64, abs=1e-6)
    assert gradients[0] == pytest.approx([0, 0, -0.5], abs=1e-6)
    assert gradients[1] == pytest.approx([0, 0.5], abs=1e-6)
