"""PyTRIO: LoRA training as a service (package pytrio, written against 0.2.9).

What its client does was read from its source: it splits a call into requests that all bear
the whole call's totals (samples, active tokens, tokens with an advantage), so that one call
is one batch whatever its size; every target but -100 counts as active, so prompt and
observation positions are -100; an empty call is an error; ids must lie within the
vocabulary. Which of the totals the service divides the gradient by stands in no source that
a client has: `reduction` says what to reckon with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytrio

from sluice_trainer.arrays import Step
from sluice_trainer.backends.service import Reduction, ServiceBackend, advantages_for, data_of
from sluice_trainer.loop import Endpoint
from sluice_trainer.losses.spec import LossSpec

#: Of a target that the loss leaves out.
IGNORED = -100


class PyTrioBackend(ServiceBackend):
    """Trains a LoRA at PyTRIO.

    `service` is a pytrio.ServiceClient, `create` makes a training client with untrained
    weights (service.create_lora_training_client(...)), `adam` are pytrio.AdamParams.
    """

    kinds = ("ppo", "importance_sampling", "cispo")

    def __init__(
        self,
        service: Any,
        create: Callable[[], Any],
        adam: Any,
        spec: LossSpec | None = None,
        *,
        reduction: Reduction = Reduction.MEAN_OF_SAMPLES,
        attempts: int = 3,
        timeout: float = 1800.0,
        ttl_seconds: int | None = None,
        hand_over: Callable[[str, int], Endpoint] | None = None,
    ) -> None:
        super().__init__(
            create,
            service.create_training_client_from_state_with_optimizer,
            adam,
            spec,
            reduction=reduction,
            attempts=attempts,
            timeout=timeout,
            ttl_seconds=ttl_seconds,
            hand_over=hand_over,
        )

    def data(self, step: Step) -> list[Any]:
        out = []
        for (_, d), advantages in zip(
            data_of(step), advantages_for(step, self.reduction), strict=True
        ):
            targets = np.where(d.mask, d.targets.astype(np.int64), IGNORED)
            out.append(
                pytrio.Datum(
                    model_input=pytrio.ModelInput.from_ints(d.inputs.tolist()),
                    loss_fn_inputs={
                        "target_tokens": targets,
                        "logprobs": d.logprobs,
                        "advantages": advantages,
                    },
                )
            )
        return out

    def config(self, step: Step) -> dict[str, Any]:
        if self.spec.kind == "importance_sampling":
            return {}
        return {"clip_low_threshold": step.clip_low, "clip_high_threshold": step.clip_high}

    def submit(self, client: Any, data: list[Any], config: Mapping[str, Any]) -> tuple[Any, Any]:
        return (
            client.forward_backward(data, loss_fn=self.spec.kind, loss_fn_config=dict(config)),
            client.optim_step(self.optimizer),
        )
