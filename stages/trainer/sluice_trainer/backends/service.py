"""What the backends of training services have in common.

The weights, and the optimiser's state, live in the service. A checkpoint of ours is the
address of a state that the service saved after the step, so what was not checkpointed is
undone by going back to the state before: that happens when the process starts again, and
here whenever a call of the service fails or does not come back in time, since nobody can
tell then what the service did.
"""

from __future__ import annotations

import enum
import json
import logging
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice_trainer.arrays import Datum, MicroBatch, Step, TokenReduction
from sluice_trainer.loop import Endpoint, Figures, annotation
from sluice_trainer.losses.numpy_reference import datum_loss
from sluice_trainer.losses.spec import LossSpec

log = logging.getLogger("sluice_trainer")

_FILE = "service.json"


class ServiceError(Exception):
    """A service failed as often as it was asked, or answered what cannot be."""


class Reduction(enum.Enum):
    """How a service makes one loss of those of all tokens of a call."""

    #: Their sum.
    SUM = "sum"
    #: The sum over a sample's tokens, the mean over the call's samples.
    MEAN_OF_SAMPLES = "mean_of_samples"
    #: The mean over all active tokens of the call.
    MEAN_OF_TOKENS = "mean_of_tokens"


def data_of(step: Step) -> Iterator[tuple[MicroBatch, Datum]]:
    """A step's data in the order in which they are sent: one call holds all of them."""
    for m in step.micro_batches:
        for d in m.data:
            yield m, d


def advantages_for(step: Step, reduction: Reduction) -> list[NDArray[np.float32]]:
    """The advantages that make a service's loss of one call the step's.

    The step's loss is sum over data of (sum or mean over tokens) / N, with the unscaled
    advantage A; ours bear A * scale. A service that adds all tokens up gets A / N; one that
    takes the mean over D samples A * D / N; one that takes it over T tokens A * T / N. Where
    the step wants the mean over a datum's tokens, each is divided by their number besides.
    """
    factor = {
        Reduction.SUM: 1.0,
        Reduction.MEAN_OF_SAMPLES: float(step.data),
        Reduction.MEAN_OF_TOKENS: float(step.loss_tokens),
    }[reduction]
    out = []
    for m, d in data_of(step):
        own = int(d.mask.sum()) if step.reduction is TokenReduction.MEAN else 1
        unscaled = d.advantages.astype(np.float64) / m.scale
        out.append((unscaled * factor / (step.n * own)).astype(np.float32))
    return out


class ServiceBackend(ABC):
    """One forward_backward and one optim_step per step, at a service.

    `create` makes a client with untrained weights, `resume` one with the weights and the
    optimiser's state that a path of save_state names. `attempts` are how often a step is
    tried from the state before it, `timeout` how many seconds each call may take.
    """

    #: What spec.kind may be.
    kinds: tuple[str, ...] = ()

    def __init__(
        self,
        create: Callable[[], Any],
        resume: Callable[[str], Any],
        optimizer: Any,
        spec: LossSpec | None = None,
        *,
        reduction: Reduction,
        attempts: int = 3,
        timeout: float = 1800.0,
        ttl_seconds: int | None = None,
        hand_over: Callable[[str, int], Endpoint] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.spec = spec or LossSpec()
        if self.spec.kind not in self.kinds:
            raise ValueError(f"loss {self.spec.kind!r}: the service has {', '.join(self.kinds)}")
        if self.spec.kl > 0 or self.spec.correction is not None:
            raise ValueError("the service's losses have neither kl nor a correction")
        if attempts < 1:
            raise ValueError(f"attempts {attempts}: want at least 1")
        self._create, self._resume = create, resume
        self.optimizer, self.reduction = optimizer, reduction
        self.attempts, self.timeout, self.ttl_seconds = attempts, timeout, ttl_seconds
        self._hand_over, self._sleep = hand_over, sleep
        self._client: Any = None
        #: Of save_state: where the next step begins. Empty: with untrained weights.
        self.state = ""
        #: Of save_weights_for_sampler, of the same weights.
        self.sampler = ""

    @abstractmethod
    def data(self, step: Step) -> list[Any]:
        """The step's data as the service's own type, in the order of data_of."""

    @abstractmethod
    def config(self, step: Step) -> dict[str, Any]:
        """loss_fn_config."""

    @abstractmethod
    def submit(self, client: Any, data: list[Any], config: Mapping[str, Any]) -> tuple[Any, Any]:
        """Futures of forward_backward and optim_step."""

    def train(self, step: Step) -> Figures:
        if step.data == 0:
            raise ValueError(f"step {step.number} has no data: a service refuses an empty call")
        if step.correction is not None:
            raise ServiceError(
                f"step {step.number} asks for a correction, and the service's losses have none: "
                "batch with --correction none"
            )
        data, config = self.data(step), self.config(step)
        output, optimised = self._try(
            f"step {step.number}", lambda client: self._step(client, data, config)
        )
        return self._figures(step, output, optimised)

    def _step(self, client: Any, data: list[Any], config: Mapping[str, Any]) -> tuple[Any, Any]:
        forward_backward, optim_step = self.submit(client, data, config)
        return forward_backward.result(self.timeout), optim_step.result(self.timeout)

    def _try(self, what: str, call: Callable[[Any], Any]) -> Any:
        """Calls, from the last saved state again whenever something fails."""
        problem: Exception | None = None
        for attempt in range(self.attempts):
            if attempt:
                self._sleep(min(2.0**attempt, 60.0))
            try:
                if self._client is None:
                    self._client = self._resume(self.state) if self.state else self._create()
                return call(self._client)
            except Exception as e:
                # The service's errors are its own. What it did is not known: its client is
                # not used again.
                problem, self._client = e, None
                log.warning(
                    "%s, attempt %d of %d, back to %s: %s: %s",
                    what,
                    attempt + 1,
                    self.attempts,
                    self.state or "untrained weights",
                    type(e).__name__,
                    e,
                )
        raise ServiceError(f"{what}: {self.attempts} attempts: {problem}") from problem

    def _figures(self, step: Step, output: Any, optimised: Any) -> Figures:
        outputs: Sequence[Mapping[str, Any]] = output.loss_fn_outputs
        if len(outputs) != step.data:
            raise ServiceError(f"{len(outputs)} answers for {step.data} data")
        out = Figures(extra={f"service.{k}": float(v) for k, v in output.metrics.items()})
        for k, v in (getattr(optimised, "metrics", None) or {}).items():
            out.extra[f"service.{k}"] = float(v)
        if any("logprobs" not in o for o in outputs):
            # Not measured: 0 is no ratio that can be.
            out.ratio_mean = out.ratio_max = 0.0
            out.extra["logprobs_missing"] = 1.0
            return out
        tokens, loss, ratios, off, low, high, surprise, mismatch = 0, 0.0, 0.0, 0.0, 0, 0, 0.0, 0.0
        most = kl = 0.0
        for (m, d), o in zip(data_of(step), outputs, strict=True):
            p = np.asarray(o["logprobs"].to_numpy(), np.float64).reshape(-1)
            if len(p) != len(d):
                raise ServiceError(f"{len(p)} logprobs for a datum of {len(d)} positions")
            one = datum_loss(self.spec, step, d, m.scale, p)
            loss += one.loss / len(m.data)
            tokens += int(d.mask.sum())
            ratios += float(one.ratios.sum())
            most = max(most, float(one.ratios.max()))
            off = max(off, float(np.abs(one.ratios - 1).max()))
            low, high = low + one.clipped_low, high + one.clipped_high
            surprise -= float(p[d.mask].sum())
            delta = (p - d.logprobs)[d.mask]
            mismatch += float(np.abs(delta).sum())
            kl += float((np.exp(delta) - delta - 1).sum())
            out.annotations.append(annotation(d, p))
        out.loss, out.ratio_mean, out.ratio_max, out.ratio_off = loss, ratios / tokens, most, off
        out.clip_fraction_low, out.clip_fraction_high = low / tokens, high / tokens
        # The mean of -p over tokens that this policy sampled: what can be known of entropy
        # without the whole distribution.
        out.entropy = surprise / tokens
        out.extra["logprob_difference_mean"] = mismatch / tokens
        out.extra["kl_to_sampler"] = kl / tokens
        return out

    def save(self, folder: Path) -> None:
        # A name of its own each time: nothing that a checkpoint names is written over.
        name = f"{folder.name.removesuffix('.tmp')}-{uuid.uuid4().hex[:8]}"
        if self._client is None:
            # Nothing was trained yet: there is no state but the untrained one, or the last.
            self._try(name, lambda client: client)

        def saved(method: str) -> str:
            future = getattr(self._client, method)(name, ttl_seconds=self.ttl_seconds)
            return str(future.result(self.timeout).path)

        # Not tried again here: the weights that were trained live in this client alone.
        # When it fails the process ends, and the step is trained anew from the state before.
        try:
            self.state, self.sampler = saved("save_state"), saved("save_weights_for_sampler")
        except Exception as e:
            self._client = None
            raise ServiceError(f"{name} could not be saved: {type(e).__name__}: {e}") from e
        (folder / _FILE).write_text(json.dumps({"state": self.state, "sampler": self.sampler}))

    def load(self, folder: Path) -> None:
        said = json.loads((folder / _FILE).read_text())
        self.state, self.sampler = str(said["state"]), str(said["sampler"])
        self._client = None

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        if self._hand_over is not None:
            return self._hand_over(self.sampler, version)
        return Endpoint(model=self.sampler)
