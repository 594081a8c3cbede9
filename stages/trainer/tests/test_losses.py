"""Losses against their own differences, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sluice_trainer.arrays import Step, step_from
from sluice_trainer.losses import LossSpec, MaskOutside, Truncate
from sluice_trainer.losses.autodiff import Padded, loss, pad
from sluice_trainer.losses.numpy_reference import datum_loss, micro_batch_loss
from sluice_trainer.proto import training_pb2 as pb
from tests.conftest import random_data, records

SPECS = [
    LossSpec(),
    LossSpec("importance_sampling"),
    LossSpec("cispo"),
    LossSpec("gspo"),
    LossSpec(kl=0.1),
    LossSpec(correction=Truncate(1.5)),
    LossSpec("gspo", correction=Truncate(1.5, by_sequence=True), kl=0.05),
    LossSpec("cispo", correction=MaskOutside(0.6, 1.7)),
    LossSpec("importance_sampling", correction=MaskOutside(0.6, 1.7, by_sequence=True)),
]
REDUCTIONS = [pb.TOKEN_REDUCTION_SUM, pb.TOKEN_REDUCTION_MEAN]


def near(step: Step, rng: np.random.Generator, by: float) -> list[list[np.ndarray]]:
    """Logprobs near the behaviour's, by micro-batch and datum."""
    return [
        [d.logprobs.astype(np.float64) + rng.normal(0, by, len(d)) for d in m.data]
        for m in step.micro_batches
    ]


def make(reduction: int, seed: int = 3) -> Step:
    data = random_data(np.random.default_rng(seed), 6)
    return step_from(*records([data[:4], data[4:]], n=8, reduction=reduction))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_gradients_are_those_of_the_loss(spec: LossSpec, reduction: int) -> None:
    step = make(reduction)
    rng = np.random.default_rng(5)
    p, q, ref = near(step, rng, 0.3), near(step, rng, 0.2), near(step, rng, 0.4)
    checked = 0
    for i, m in enumerate(step.micro_batches):
        for j, d in enumerate(m.data):
            if spec.kind == "cispo":
                # Its gradient is by definition not that of its value: the ratio stands still.
                continue

            def at(x: np.ndarray, i: int = i, j: int = j, d: Any = d, m: Any = m) -> float:
                return datum_loss(spec, step, d, m.scale, x, q[i][j], ref[i][j]).loss

            got = datum_loss(spec, step, d, m.scale, p[i][j], q[i][j], ref[i][j]).gradient
            for t in range(len(d)):
                h = np.zeros(len(d))
                h[t] = 1e-6
                want = (at(p[i][j] + h) - at(p[i][j] - h)) / 2e-6
                assert got[t] == pytest.approx(want, abs=1e-5), (i, j, t)
                checked += 1
            assert not got[~d.mask].any()
    assert checked > 0 or spec.kind == "cispo"


def test_ppo_by_hand() -> None:
    # One sampled token, advantage 1: ratio 1.5 is clipped at 1.28 and gives no gradient.
    # Advantage -1: ratio 0.5 is clipped at 0.8; ratio 1.5 is not.
    for advantage, ratio, want_loss, want_gradient in (
        (1.0, 1.5, -1.28, 0.0),
        (1.0, 0.5, -0.5, -0.5),
        (-1.0, 0.5, 0.8, 0.0),
        (-1.0, 1.5, 1.5, 1.5),
    ):
        step = step_from(*records([[([1, 2], [1], [-1.0], advantage)]]))
        m = step.micro_batches[0]
        got = datum_loss(LossSpec(), step, m.data[0], m.scale, np.array([-1.0 + np.log(ratio)]))
        assert got.loss == pytest.approx(want_loss)
        assert got.gradient[0] == pytest.approx(want_gradient, abs=1e-9)


def test_on_policy_every_loss_gives_the_policy_gradient() -> None:
    for reduction in REDUCTIONS:
        step = make(reduction)
        behaviour = [[d.logprobs.astype(float) for d in m.data] for m in step.micro_batches]
        for kind in ("ppo", "importance_sampling", "cispo", "gspo"):
            for m, b in zip(step.micro_batches, behaviour, strict=True):
                _, gradients = micro_batch_loss(LossSpec(kind), step, m, b)
                for d, g in zip(m.data, gradients, strict=True):
                    count = d.mask.sum() if reduction == pb.TOKEN_REDUCTION_MEAN else 1
                    assert g == pytest.approx(-d.advantages / count / len(m.data), abs=1e-6)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_jax_agrees_with_the_reference(spec: LossSpec, reduction: int) -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    import jax.numpy as jnp

    def run(step: Step, i: int, p: Any, q: Any, ref: Any) -> tuple[float, np.ndarray]:
        m = step.micro_batches[i]
        padded = pad(m, to=8, rows=4)

        def f(x: Any) -> Any:
            return loss(jnp, jax.lax.stop_gradient, spec, step, padded, x, len(m.data), q, ref)

        (value, _), g = jax.value_and_grad(f, has_aux=True)(p)
        return float(value), np.asarray(g)

    compare(spec, make(reduction), run, jnp.asarray)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_torch_agrees_with_the_reference(spec: LossSpec, reduction: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def run(step: Step, i: int, p: Any, q: Any, ref: Any) -> tuple[float, np.ndarray]:
        m = step.micro_batches[i]
        n = pad(m)
        batch = Padded(
            n.inputs,
            n.targets,
            torch.tensor(n.logprobs),  # type: ignore[arg-type]
            torch.tensor(n.advantages),  # type: ignore[arg-type]
            torch.tensor(n.mask),  # type: ignore[arg-type]
            n.scale,
        )
        x = p.clone().requires_grad_(True)
        value, _ = loss(torch, lambda t: t.detach(), spec, step, batch, x, len(m.data), q, ref)
        value.backward()
        return float(value), x.grad.numpy()

    compare(spec, make(reduction), run, lambda a: torch.tensor(np.asarray(a, np.float32)))


def compare(spec: LossSpec, step: Step, run: Any, asarray: Any) -> None:
    rng = np.random.default_rng(11)
    p, q, ref = near(step, rng, 0.3), near(step, rng, 0.2), near(step, rng, 0.4)
    for i, m in enumerate(step.micro_batches):
        shape = pad(m, to=8, rows=4).mask.shape if run.__code__.co_freevars.count("jnp") else None
        shape = shape or pad(m).mask.shape

        def rectangle(x: list[np.ndarray], shape: Any = shape) -> Any:
            out = np.zeros(shape, np.float32)
            for j, row in enumerate(x):
                out[j, : len(row)] = row
            return asarray(out)

        want, gradients = micro_batch_loss(spec, step, m, p[i], q[i], ref[i])
        got, g = run(step, i, rectangle(p[i]), rectangle(q[i]), rectangle(ref[i]))
        assert got == pytest.approx(want, rel=1e-4, abs=1e-5)
        for j, row in enumerate(gradients):
            assert g[j, : len(row)] == pytest.approx(row, rel=1e-3, abs=1e-5)
            assert not g[j, len(row) :].any()


def test_what_makes_no_sense_is_refused() -> None:
    for make_one in (
        lambda: LossSpec("dpo"),
        lambda: LossSpec(kl=-1),
        lambda: LossSpec(kl=float("nan")),
        lambda: Truncate(0),
        lambda: MaskOutside(1.2, 1.5),
    ):
        with pytest.raises(ValueError, match="want"):
            make_one()
    step = make(REDUCTIONS[0])
    m = step.micro_batches[0]
    p = [d.logprobs.astype(float) for d in m.data]
    with pytest.raises(ValueError, match="before the step"):
        micro_batch_loss(LossSpec(correction=Truncate()), step, m, p)
    with pytest.raises(ValueError, match="reference"):
        micro_batch_loss(LossSpec(kl=0.1), step, m, p)
