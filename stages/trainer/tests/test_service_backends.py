"""PyTRIO and Tinker behind fakes of their clients, which take the SDKs' own types.

The fakes compute loss and gradient from what was sent, as the service says it does, and
know nothing of steps; the gradient must be the step's. Their methods are checked against
the signatures of the SDKs' clients, and what is sent goes through the SDKs' own checks.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice_trainer.arrays import Step, step_from
from sluice_trainer.backends.service import Reduction, ServiceBackend, ServiceError
from sluice_trainer.ledger import Ledger
from sluice_trainer.loop import Trainer
from sluice_trainer.losses import LossSpec, Truncate
from sluice_trainer.losses.numpy_reference import micro_batch_loss
from sluice_trainer.proto import training_pb2 as pb
from tests.conftest import random_data, records
from tests.test_loop import Fuse, Killed, Log


def sdk(name: str) -> Any:
    if os.environ.get("CI"):
        return __import__(name)
    return pytest.importorskip(name, reason=f"{name} is not installed: see requirements.txt")


pytrio, tinker = sdk("pytrio"), sdk("tinker")

from sluice_trainer.backends.pytrio import PyTrioBackend  # noqa: E402
from sluice_trainer.backends.tinker import TinkerBackend  # noqa: E402

VOCABULARY = 11


class Done:
    """A future that is done, or has failed."""

    def __init__(self, value: Any = None, error: Exception | None = None) -> None:
        self.value, self.error = value, error

    def result(self, timeout: float | None = None) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class Service:
    """The service's side: states by path, and what was done. Its weights are one number
    for each optimiser step; logprobs are a function of them and the token."""

    def __init__(self, reduction: Reduction) -> None:
        self.reduction = reduction
        self.states: dict[str, list[int]] = {}
        self.calls: list[tuple[str, list[Any], dict[str, Any]]] = []
        self.gradients: list[np.ndarray[Any, Any]] = []
        self.failures: list[str] = []
        self.fuse = Fuse(0)

    def fails(self, what: str) -> bool:
        if self.failures and self.failures[0] == what:
            self.failures.pop(0)
            return True
        return False

    def logprobs(self, steps: int, inputs: list[int], targets: list[int]) -> Any:
        x = np.array(inputs) * 7 + np.array(targets) * 3 + steps
        return -0.1 - (x % 13) / 6.0

    def loss(self, steps: int, kind: str, data: list[Any], config: dict[str, Any]) -> list[Any]:
        """What forward_backward answers; it notes the gradient by token."""
        self.calls.append((kind, data, config))
        rows = []
        for inputs, targets, b, a, ratio_mask in data:
            p = self.logprobs(steps, inputs, targets)
            active = np.array(targets) != -100
            r = np.exp(p - b)
            if kind == "gspo":
                r = np.full(len(p), np.exp(((p - b) * ratio_mask).sum() / ratio_mask.sum()))
            low, high = config.get("clip_low_threshold"), config.get("clip_high_threshold")
            if kind == "importance_sampling":
                slope = -r * a
            elif kind == "cispo":
                slope = -np.clip(r, low, high) * a
            else:
                stopped = ((a > 0) & (r > high)) | ((a < 0) & (r < low))
                slope = np.where(stopped, 0, -r * a)
            if kind == "gspo":
                slope = ratio_mask * slope.sum() / ratio_mask.sum()
            rows.append((p, np.where(active, slope, 0), int(active.sum())))
        by = {
            Reduction.SUM: 1,
            Reduction.MEAN_OF_SAMPLES: len(rows),
            Reduction.MEAN_OF_TOKENS: sum(n for _, _, n in rows),
        }[self.reduction]
        self.gradients.append(np.concatenate([s / by for _, s, _ in rows]))
        return [p for p, _, _ in rows]


class Client:
    """What both SDKs' training clients have in common."""

    def __init__(self, service: Service, state: list[int]) -> None:
        self.service, self.weights, self.gradients = service, list(state), 0
        self.poisoned = False

    def _forward_backward(self, data: Any, loss_fn: str, config: Any) -> Done:
        if self.service.fails("forward_backward"):
            self.poisoned = True
            return Done(error=TimeoutError("the promise expired"))
        self.service.fuse.point()
        read = [self.read(d) for d in data]
        logprobs = self.service.loss(len(self.weights), loss_fn, read, dict(config or {}))
        self.gradients += 1
        tensors = [{"logprobs": self.tensor(p)} for p in logprobs]
        return Done(self.output(tensors))

    def optim_step(self, optim_params: Any = None) -> Done:
        assert not self.poisoned, "a client that failed was used again"
        self.weights.append(self.gradients)
        self.gradients = 0
        if self.service.fails("optim_step"):
            self.poisoned = True
            return Done(error=TimeoutError("done, but nobody heard of it"))
        self.service.fuse.point()
        return Done(self.sdk_optim())

    def _save(self, kind: str, name: str) -> str:
        assert not self.poisoned
        if self.service.fails(kind):
            raise ConnectionError("gone")
        path = f"fake://{kind}/{name}"
        assert path not in self.service.states, "a saved state was written over"
        self.service.states[path] = list(self.weights)
        self.service.fuse.point()
        return path

    def read(self, d: Any) -> Any:
        raise NotImplementedError

    def tensor(self, x: Any) -> Any:
        raise NotImplementedError

    def output(self, tensors: Any) -> Any:
        raise NotImplementedError

    def sdk_optim(self) -> Any:
        raise NotImplementedError


class TrioClient(Client):
    def forward_backward(
        self,
        data: list[Any],
        loss_fn: str = "cross_entropy",
        loss_fn_config: dict[str, object] | None = None,
        auto_shift: bool = False,
    ) -> Done:
        from pytrio.client.builders.training import build_trainer_forward_payload
        from pytrio.client.training_batch import plan_training_batch
        from pytrio.model.limits import TrainingLimits

        plan = plan_training_batch(
            data,
            loss_fn=loss_fn,
            auto_shift=auto_shift,
            limits=TrainingLimits(None, None, None),
            tokenizer_vocab_size=VOCABULARY,
        )
        for chunk in plan.chunks:
            build_trainer_forward_payload(
                chunk=chunk,
                loss_fn_config=loss_fn_config,
                auto_shift=auto_shift,
                gradient_accumulation=plan.totals,
            )
        self.active = plan.totals.total_active_tokens
        return self._forward_backward(data, loss_fn, loss_fn_config)

    def optim_step(self, adam_params: Any) -> Done:
        assert isinstance(adam_params, pytrio.AdamParams)
        return super().optim_step(adam_params)

    def save_state(
        self, name: str, ttl_seconds: int | None = None, overwrite: bool = False
    ) -> Done:
        from pytrio.client.builders.training import build_trainer_save_payload
        from pytrio.types.checkpoint.save_weights_response import SaveWeightsResponse

        build_trainer_save_payload(name, ttl_seconds, overwrite)
        return Done(SaveWeightsResponse(path=self._save("state", name), model="m", size=1))

    def save_weights_for_sampler(self, name: str, ttl_seconds: int | None = None) -> Done:
        from pytrio.types.checkpoint.save_weights_for_sampler_response import (
            SaveWeightsForSamplerResponse,
        )

        return Done(
            SaveWeightsForSamplerResponse(path=self._save("sampler", name), model="m", size=1)
        )

    def read(self, d: Any) -> Any:
        assert isinstance(d, pytrio.Datum)
        x = d.loss_fn_inputs
        return (
            d.model_input.to_ints(),
            x["target_tokens"].tolist(),
            x["logprobs"].to_numpy(),
            x["advantages"].to_numpy(),
            None,
        )

    def tensor(self, x: Any) -> Any:
        from pytrio.types.forward.tensor_data import TensorData

        return TensorData.from_numpy(x)

    def output(self, tensors: Any) -> Any:
        from pytrio.types.forward.forward_backward_output import ForwardBackwardOutput

        return ForwardBackwardOutput(loss_fn_outputs=tensors, metrics={"loss_sum": 1.0})

    def sdk_optim(self) -> Any:
        from pytrio.types.optim_step.optim_step_response import OptimStepResponse

        return OptimStepResponse(metrics={"lr": 1.0})


class TinkerClient(Client):
    def forward_backward(self, data: list[Any], loss_fn: Any, loss_fn_config: Any = None) -> Done:
        from tinker.proto.request_conv import forward_backward_request_to_proto
        from tinker.types import ForwardBackwardInput
        from tinker.types.forward_backward_request import ForwardBackwardRequest

        assert loss_fn in inspect.getsource(tinker.types.loss_fn_type)
        m = forward_backward_request_to_proto(
            ForwardBackwardRequest(
                forward_backward_input=ForwardBackwardInput(data, loss_fn, loss_fn_config),
                model_id="m",
                seq_id=1,
            )
        )
        assert len(m.data) == len(data)
        self.proto = m
        return self._forward_backward(data, loss_fn, loss_fn_config)

    def optim_step(self, optim_params: Any = None, *, adam_params: Any = None) -> Done:
        assert isinstance(optim_params, tinker.AdamParams)
        return super().optim_step(optim_params)

    def save_state(
        self,
        name: str,
        ttl_seconds: int | None = None,
        overwrite: bool = False,
        user_metadata: dict[str, str] | None = None,
    ) -> Done:
        return Done(tinker.types.SaveWeightsResponse(path=self._save("state", name)))

    def save_weights_for_sampler(
        self,
        name: str,
        ttl_seconds: int | None = None,
        user_metadata: dict[str, str] | None = None,
    ) -> Done:
        return Done(tinker.types.SaveWeightsForSamplerResponse(path=self._save("sampler", name)))

    def read(self, d: Any) -> Any:
        assert isinstance(d, tinker.Datum)
        x = d.loss_fn_inputs
        assert x["target_tokens"].dtype == "int64"
        mask = x.get("sequence_ratio_mask")
        return (
            list(d.model_input.to_ints()),
            x["target_tokens"].tolist(),
            x["logprobs"].to_numpy(),
            x["advantages"].to_numpy(),
            mask.to_numpy() if mask else None,
        )

    def tensor(self, x: Any) -> Any:
        return tinker.TensorData.from_numpy(x)

    def output(self, tensors: Any) -> Any:
        return tinker.types.ForwardBackwardOutput("ArrayRecord", tensors, {"loss:sum": 1.0})

    def sdk_optim(self) -> Any:
        return tinker.types.OptimStepResponse(metrics=None)


class ServiceClient:
    """The part of both SDKs' ServiceClient that is used."""

    def __init__(self, service: Service, client: type[Client]) -> None:
        self.service, self.client = service, client

    def create_training_client_from_state_with_optimizer(self, path: str) -> Any:
        made = self.client(self.service, self.service.states[path])
        return Done(made) if self.client is TinkerClient else made


def backend(name: str, service: Service, spec: LossSpec | None = None, **more: Any) -> Any:
    made: ServiceBackend
    if name == "tinker":
        made = TinkerBackend(
            ServiceClient(service, TinkerClient),
            lambda: TinkerClient(service, []),
            tinker.AdamParams(learning_rate=1e-3),
            spec,
            **more,
        )
    else:
        made = PyTrioBackend(
            ServiceClient(service, TrioClient),
            lambda: TrioClient(service, []),
            pytrio.AdamParams(learning_rate=1e-3),
            spec,
            reduction=service.reduction,
            **more,
        )
    made._sleep = lambda _: None
    return made


@pytest.mark.parametrize(
    ("fake", "real"),
    [
        (TrioClient, pytrio.TrainingClient),
        (TinkerClient, tinker.TrainingClient),
    ],
)
def test_the_fakes_have_the_sdk_s_signatures(fake: Any, real: Any) -> None:
    for method in ("forward_backward", "optim_step", "save_state", "save_weights_for_sampler"):
        want = inspect.signature(inspect.unwrap(getattr(real, method)))
        have = inspect.signature(getattr(fake, method))
        described = [
            [(p.name, p.kind, p.default) for p in s.parameters.values()] for s in (want, have)
        ]
        assert described[0] == described[1], method


@pytest.mark.parametrize("module", [pytrio, tinker])
def test_the_sdk_s_service_client_resumes_by_path(module: Any) -> None:
    method = module.ServiceClient.create_training_client_from_state_with_optimizer
    assert next(iter(list(inspect.signature(inspect.unwrap(method)).parameters)[1:])) == "path"


def step_of(reduction: int, seed: int = 3) -> Step:
    data = random_data(np.random.default_rng(seed), 7, VOCABULARY)
    return step_from(*records([data[:2], data[2:6], data[6:]], n=9, reduction=reduction))


def want_gradient(step: Step, spec: LossSpec, service: Service) -> Any:
    """The step's, by the reference, micro-batch by micro-batch."""
    rows = []
    for m in step.micro_batches:
        p = [service.logprobs(0, d.inputs.tolist(), d.targets.tolist()) for d in m.data]
        rows += micro_batch_loss(spec, step, m, p)[1]
    return np.concatenate(rows)


CASES = [
    *(("pytrio", r, k) for r in Reduction for k in ("ppo", "importance_sampling", "cispo")),
    *(("tinker", Reduction.SUM, k) for k in ("ppo", "importance_sampling", "cispo", "gspo")),
]


@pytest.mark.parametrize("reduction", [pb.TOKEN_REDUCTION_SUM, pb.TOKEN_REDUCTION_MEAN])
@pytest.mark.parametrize(("name", "service_reduction", "kind"), CASES)
def test_one_call_has_the_step_s_gradient(
    name: str, service_reduction: Reduction, kind: str, reduction: int
) -> None:
    step, service, spec = step_of(reduction), Service(service_reduction), LossSpec(kind)
    b = backend(name, service, spec)
    figures = b.train(step)
    assert len(service.calls) == 1, "one forward_backward per step"
    np.testing.assert_allclose(
        service.gradients[0], want_gradient(step, spec, service), rtol=2e-6, atol=1e-9
    )
    sent = service.calls[0][2]
    if kind == "importance_sampling":
        assert sent == {}
    else:
        assert sent == {"clip_low_threshold": 0.8, "clip_high_threshold": 1.28}
    want = sum(
        micro_batch_loss(
            spec,
            step,
            m,
            [service.logprobs(0, d.inputs.tolist(), d.targets.tolist()) for d in m.data],
        )[0]
        for m in step.micro_batches
    )
    assert figures.loss == pytest.approx(want, rel=1e-6)
    assert figures.ratio_max > 1
    assert figures.clip_fraction_high > 0 or kind == "importance_sampling"


def test_pytrio_counts_the_policy_s_tokens_alone() -> None:
    step, service = step_of(pb.TOKEN_REDUCTION_SUM), Service(Reduction.MEAN_OF_SAMPLES)
    b = backend("pytrio", service)
    b.train(step)
    assert b._client.active == step.loss_tokens
    for (_, targets, _, a, _), d in zip(
        service.calls[0][1], (d for m in step.micro_batches for d in m.data), strict=True
    ):
        assert [t == -100 for t in targets] == [not x for x in d.mask]
        assert not a[~d.mask].any()


def test_an_empty_step_is_not_sent() -> None:
    for name in ("pytrio", "tinker"):
        service = Service(Reduction.SUM)
        with pytest.raises(ValueError, match="no data"):
            backend(name, service).train(step_from(*records([], n=4)))
        assert not service.calls


def test_losses_that_a_service_lacks_are_refused() -> None:
    service = Service(Reduction.SUM)
    with pytest.raises(ValueError, match="gspo"):
        backend("pytrio", service, LossSpec("gspo"))
    for name in ("pytrio", "tinker"):
        with pytest.raises(ValueError, match="neither kl nor a correction"):
            backend(name, service, LossSpec("ppo", kl=0.1))
        with pytest.raises(ValueError, match="neither kl nor a correction"):
            backend(name, service, LossSpec("ppo", correction=Truncate(2.0)))


@pytest.mark.parametrize("name", ["pytrio", "tinker"])
@pytest.mark.parametrize("failure", ["forward_backward", "optim_step"])
def test_a_call_that_fails_is_made_again_from_the_state_before(
    name: str, failure: str, tmp_path: Path
) -> None:
    service = Service(Reduction.SUM)
    b = backend(name, service)
    b.train(step_of(pb.TOKEN_REDUCTION_SUM))
    b.save(tmp_path)
    service.failures = [failure]
    b.train(step_of(pb.TOKEN_REDUCTION_SUM, 4))
    # Two optimiser steps, each of one gradient, whether the second was done or not.
    assert b._client.weights == [1, 1]
    service.failures = [failure] * 3
    with pytest.raises(ServiceError, match="3 attempts"):
        b.train(step_of(pb.TOKEN_REDUCTION_SUM, 5))


@pytest.mark.parametrize("name", ["pytrio", "tinker"])
@pytest.mark.parametrize("between", range(1, 9))
def test_killed_at_any_moment_each_step_is_in_the_weights_once(
    name: str, between: int, tmp_path: Path
) -> None:
    service, log = Service(Reduction.SUM), Log()
    steps = [
        step_from(*records([random_data(np.random.default_rng(i), 3, VOCABULARY)], step=i), {0: i})
        for i in (1, 2, 3)
    ]
    for life in range(60):
        service.fuse = log.fuse = Fuse(between + life)
        b = backend(name, service)
        trainer = Trainer("r", b, Ledger(tmp_path, "r"), log)
        try:
            trainer.start()
            trainer.run(steps[trainer.resume.get(0, 0) :])
        except Killed:
            continue
        break
    else:
        pytest.fail("never came to the end")
    assert service.states[b.state] == service.states[b.sampler] == [1, 1, 1]
    answers: dict[int, str] = {}
    for u in log.updates:
        assert answers.setdefault(u.step, u.model) == u.model, "two different answers"
    assert set(answers) == {1, 2, 3}
    assert [len(service.states[answers[i]]) for i in (1, 2, 3)] == [1, 2, 3]


def test_provenance_tiles_both_fields_and_names_places() -> None:
    #                prompt  | sampled a | observation | sampled b
    tokens = [1, 2, 3, 4, 5, 6, 7, 8]
    mask = [0, 1, 1, 0, 0, 1, 1]
    step = step_from(*records([[(tokens, mask, [-0.5] * 7, 1.0)]]))
    service = Service(Reduction.SUM)
    b = backend("tinker", service, sequences=lambda step, d: ["a", "b"])
    b.train(step)
    sent = b._client.proto.data[0]

    def told(spans: Any) -> list[tuple[str, str, int, int]]:
        out = []
        for s in spans:
            kind = "sampled_tokens" if s.HasField("sampled_tokens") else "prompt_tokens"
            arm = getattr(s, kind)
            out.append((kind.split("_")[0], arm.sequence_id, arm.offset, arm.length))
        return out

    assert told(sent.model_input_spans) == [
        ("prompt", "a", 0, 2),
        ("sampled", "a", 0, 2),
        ("prompt", "b", 4, 2),
        ("sampled", "b", 0, 1),
    ]
    assert told(sent.loss_fn_input_spans) == [
        ("prompt", "a", 1, 1),
        ("sampled", "a", 0, 2),
        ("prompt", "b", 4, 2),
        ("sampled", "b", 0, 2),
    ]
    with pytest.raises(ValueError, match="1 sequence names for 2"):
        backend("tinker", service, sequences=lambda step, d: ["a"], attempts=1).train(step)


def test_an_answer_of_another_shape_is_refused() -> None:
    service = Service(Reduction.SUM)
    b = backend("tinker", service, attempts=1)
    made: Callable[[], Any] = b._create

    def short() -> Any:
        client = made()
        whole = client.output
        client.output = lambda tensors: whole(tensors[:-1])
        return client

    b._create = short
    with pytest.raises(ServiceError, match="6 answers for 7 data"):
        b.train(step_of(pb.TOKEN_REDUCTION_SUM))
