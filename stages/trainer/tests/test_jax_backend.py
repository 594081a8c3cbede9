"""A small model, really trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice_trainer.arrays import Step, step_from
from sluice_trainer.losses import LossSpec, Truncate
from sluice_trainer.proto import training_pb2 as pb
from tests.conftest import random_data, records

jax = pytest.importorskip("jax", reason="jax is not installed")
optax = pytest.importorskip("optax", reason="optax is not installed")
jnp = jax.numpy

from sluice_trainer.backends.jax import JaxBackend  # noqa: E402

VOCABULARY, WIDTH = 11, 8


def parameters(seed: int = 0) -> dict[str, Any]:
    keys = jax.random.split(jax.random.PRNGKey(seed), 2)
    return {
        "in": jax.random.normal(keys[0], (VOCABULARY, WIDTH)),
        "out": jax.random.normal(keys[1], (WIDTH, VOCABULARY)) * 0.3,
    }


def apply(p: dict[str, Any], tokens: Any) -> Any:
    """Sees the mean of all tokens so far: position matters, the future does not."""
    x = p["in"][tokens]
    steps = jnp.arange(1, tokens.shape[1] + 1)[None, :, None]
    return jnp.tanh(jnp.cumsum(x, axis=1) / steps) @ p["out"]


def on_policy(data: list[Any], p: dict[str, Any]) -> list[Any]:
    """The same data with the logprobs that these parameters give."""
    out = []
    for tokens, mask, _, advantage in data:
        every = jax.nn.log_softmax(apply(p, jnp.array([tokens[:-1]])), axis=-1)[0]
        logprobs = [float(every[i, t]) for i, t in enumerate(tokens[1:])]
        out.append((tokens, mask, logprobs, advantage))
    return out


def pack(data: list[Any], sizes: list[int], reduction: int) -> Step:
    packs, at = [], 0
    for size in sizes:
        packs.append(data[at : at + size])
        at += size
    return step_from(*records(packs, n=12, reduction=reduction))


@pytest.mark.parametrize("reduction", [pb.TOKEN_REDUCTION_SUM, pb.TOKEN_REDUCTION_MEAN])
@pytest.mark.parametrize("spec", [LossSpec(), LossSpec("gspo", kl=0.1), LossSpec("cispo")], ids=str)
def test_how_data_are_packed_changes_nothing(spec: LossSpec, reduction: int) -> None:
    data = random_data(np.random.default_rng(1), 9, VOCABULARY)
    reference = parameters(5)
    b = JaxBackend(apply, parameters(), optax.sgd(1.0), spec, reference=reference, round_to=4)
    want, figures = b.gradient(pack(data, [9], reduction))
    for sizes in ([4, 5], [1] * 9, [2, 3, 4]):
        got, again = b.gradient(pack(data, sizes, reduction))
        assert again.loss == pytest.approx(figures.loss, rel=1e-4)
        for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert np.asarray(x) == pytest.approx(np.asarray(y), rel=1e-3, abs=1e-6)


def test_the_gradient_is_that_of_one_unsplit_batch_computed_otherwise() -> None:
    """On-policy the gradient is -(1/N) sum over sampled tokens of A d logprob, whatever the
    packing: here from the raw trajectories, without any of the package's arrays."""
    p = parameters()
    data = on_policy(random_data(np.random.default_rng(2), 7, VOCABULARY), p)
    n = 12

    def objective(q: Any) -> Any:
        total = 0.0
        for tokens, mask, _, advantage in data:
            every = jax.nn.log_softmax(apply(q, jnp.array([tokens[:-1]])), axis=-1)[0]
            for i, sampled in enumerate(mask):
                if sampled:
                    total = total - advantage * every[i, tokens[i + 1]] / n
        return total

    want = jax.grad(objective)(p)
    got, figures = JaxBackend(apply, p, optax.sgd(1.0)).gradient(
        pack(data, [3, 4], pb.TOKEN_REDUCTION_SUM)
    )
    for x, y in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert np.asarray(x) == pytest.approx(np.asarray(y), rel=1e-3, abs=1e-6)
    assert figures.ratio_off == pytest.approx(0, abs=1e-5)
    assert figures.ratio_mean == pytest.approx(1, abs=1e-5)
    assert figures.extra["logprob_difference_mean"] == pytest.approx(0, abs=1e-5)


def test_logprobs_off_by_one_show_in_the_ratio() -> None:
    p = parameters()
    data = on_policy(random_data(np.random.default_rng(2), 7, VOCABULARY), p)
    shifted = [(t, m, [*lp[1:], lp[0]], a) for t, m, lp, a in data]
    _, figures = JaxBackend(apply, p, optax.sgd(1.0)).gradient(
        pack(shifted, [7], pb.TOKEN_REDUCTION_SUM)
    )
    assert figures.ratio_off > 0.2


def test_a_batch_names_its_correction_and_tokens_are_annotated() -> None:
    p = parameters()
    data = random_data(np.random.default_rng(4), 5, VOCABULARY)
    plain = pack(data, [2, 3], pb.TOKEN_REDUCTION_SUM)
    asking = replace(plain, correction=Truncate(0.7))
    want, _ = JaxBackend(apply, p, optax.sgd(1.0), LossSpec(correction=Truncate(0.7))).gradient(
        plain
    )
    b = JaxBackend(apply, p, optax.sgd(1.0))
    uncorrected, _ = b.gradient(plain)
    got, figures = b.gradient(asking)
    same = [np.array_equal(x, y) for x, y in zip(*map(jax.tree.leaves, (got, want)), strict=True)]
    assert all(same)
    assert any((np.asarray(got[k]) != np.asarray(uncorrected[k])).any() for k in got)

    rows = [d for m in plain.micro_batches for d in m.data]
    difference, count, k3 = 0.0, 0, 0.0
    for d, a in zip(rows, figures.annotations, strict=True):
        assert a.datum is d or a.datum.copy == d.copy
        every = jax.nn.log_softmax(apply(p, jnp.array([d.inputs.astype(np.int32)])), axis=-1)[0]
        logprobs = np.asarray(every)[np.arange(len(d)), d.targets][d.mask]
        entropy = -(np.exp(every) * np.asarray(every)).sum(-1)[d.mask]
        assert a.logprobs == pytest.approx(logprobs, abs=1e-5)
        assert a.entropy == pytest.approx(entropy, abs=1e-5)
        off = logprobs - d.logprobs[d.mask]
        difference, count = difference + float(np.abs(off).sum()), count + len(off)
        k3 += float((np.exp(off) - off - 1).sum())
    assert figures.extra["logprob_difference_mean"] == pytest.approx(difference / count, rel=1e-4)
    assert figures.extra["kl_to_sampler"] == pytest.approx(k3 / count, rel=1e-4)


def test_training_makes_what_was_paid_likelier() -> None:
    p = parameters()
    b = JaxBackend(apply, p, optax.adam(0.05), LossSpec(correction=Truncate()))
    good, bad = [1, 2, 3], [1, 2, 4]

    def logprob(token: int) -> float:
        return float(jax.nn.log_softmax(apply(b.parameters, jnp.array([[1, 2]])))[0, 1, token])

    before = logprob(3) - logprob(4)
    for number in range(1, 21):
        now = on_policy([(good, [0, 1], [], 1.0), (bad, [0, 1], [], -1.0)], b.parameters)
        figures = b.train(step_from(*records([now], step=number)))
        assert figures.gradient_norm > 0
    assert logprob(3) - logprob(4) > before + 1


def test_what_was_saved_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    data = random_data(np.random.default_rng(3), 6, VOCABULARY)
    step = pack(data, [6], pb.TOKEN_REDUCTION_SUM)
    a = JaxBackend(apply, parameters(), optax.adam(0.1))
    a.train(step)
    a.save(tmp_path)
    b = JaxBackend(apply, parameters(9), optax.adam(0.1))
    b.load(tmp_path)
    assert a.train(step).loss == b.train(step).loss
    for x, y in zip(jax.tree.leaves(a.parameters), jax.tree.leaves(b.parameters), strict=True):
        assert np.array_equal(np.asarray(x), np.asarray(y))
    wrong = JaxBackend(apply, {"in": jnp.zeros((2, 2))}, optax.adam(0.1))
    with pytest.raises(ValueError, match="arrays"):
        wrong.load(tmp_path)
