"""Tinker: LoRA training as a service (package tinker, written against 0.38).

Its losses are sums over all tokens of a call (https://tinker-docs.thinkingmachines.ai/losses),
so the advantages bear 1 / N. Prompt and observation positions have advantage 0 and logprob
0, with which each of the losses is 0 there; `gspo` gets a mask besides. The clip bounds are
those of the ratio itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import tinker

from sluice_trainer.arrays import Datum, Step
from sluice_trainer.backends.service import Reduction, ServiceBackend, advantages_for, data_of
from sluice_trainer.loop import Endpoint
from sluice_trainer.losses.spec import LossSpec

#: Gives the sequence ids that Tinker's sampler gave a datum's sampled runs, in order.
Sequences = Callable[[Step, Datum], Sequence[str]]


class TinkerBackend(ServiceBackend):
    """Trains a LoRA at Tinker.

    `service` is a tinker.ServiceClient, `create` makes a training client with untrained
    weights (service.create_lora_training_client(...).result()), `adam` are
    tinker.AdamParams. With `sequences` each datum says where its tokens are from
    (provenance spans): only who sampled them at Tinker knows the names, and a name that is
    not Tinker's would be a false claim, so without it nothing is claimed.
    """

    kinds = ("ppo", "importance_sampling", "cispo", "gspo")

    def __init__(
        self,
        service: Any,
        create: Callable[[], Any],
        adam: Any,
        spec: LossSpec | None = None,
        *,
        sequences: Sequences | None = None,
        attempts: int = 3,
        timeout: float = 1800.0,
        ttl_seconds: int | None = None,
        hand_over: Callable[[str, int], Endpoint] | None = None,
    ) -> None:
        def resume(path: str) -> Any:
            return service.create_training_client_from_state_with_optimizer(path).result()

        super().__init__(
            create,
            resume,
            adam,
            spec,
            reduction=Reduction.SUM,
            attempts=attempts,
            timeout=timeout,
            ttl_seconds=ttl_seconds,
            hand_over=hand_over,
        )
        self.sequences = sequences

    def data(self, step: Step) -> list[Any]:
        out = []
        for (_, d), advantages in zip(
            data_of(step), advantages_for(step, self.reduction), strict=True
        ):
            inputs: dict[str, Any] = {
                "target_tokens": d.targets.astype(np.int64),
                "logprobs": d.logprobs,
                "advantages": advantages,
            }
            if self.spec.kind == "gspo":
                inputs["sequence_ratio_mask"] = d.mask.astype(np.float32)
            datum = tinker.Datum(
                model_input=tinker.ModelInput.from_ints(d.inputs.tolist()), loss_fn_inputs=inputs
            )
            if self.sequences is not None:
                both = _spans(d, self.sequences(step, d))
                datum = datum.with_provenance(model_input=both[0], loss_fn_inputs=both[1])
            out.append(datum)
        return out

    def config(self, step: Step) -> dict[str, Any]:
        if self.spec.kind == "importance_sampling":
            return {}
        return {"clip_low_threshold": step.clip_low, "clip_high_threshold": step.clip_high}

    def submit(self, client: Any, data: list[Any], config: Mapping[str, Any]) -> tuple[Any, Any]:
        # Both before waiting for either: Tinker executes them in this order, in one go.
        return (
            client.forward_backward(data, self.spec.kind, dict(config) or None),
            client.optim_step(self.optimizer),
        )


def _spans(d: Datum, names: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Provenance of the inputs and of the targets.

    A run of sampled tokens is its sequence's, from its first token on; a run of others, the
    prompt's and observations', stands at its own place in the prompt of the request that
    sampled the run behind it.
    """
    # Of all tokens: the first was not sampled.
    sampled = np.concatenate([[False], d.mask])
    edges = [0, *(np.flatnonzero(np.diff(sampled)) + 1).tolist(), len(sampled)]
    runs = list(pairwise(edges))
    if not sampled[-1]:
        raise ValueError(
            f"slot {d.slot} sample {d.sample_index} ends in {runs[-1][1] - runs[-1][0]} tokens "
            "that no request had for its prompt: nothing can be said of where they are from"
        )
    if len(names) * 2 != len(runs):
        raise ValueError(
            f"{len(names)} sequence names for {len(runs) // 2} sampled runs of slot {d.slot} "
            f"sample {d.sample_index}"
        )

    def span(run: int, begin: int, end: int) -> Any:
        if sampled[begin]:
            return tinker.types.SampledProvenanceSpan(
                sequence_id=names[run // 2], offset=begin - runs[run][0], length=end - begin
            )
        return tinker.types.PromptProvenanceSpan(
            sequence_id=names[run // 2], offset=begin, length=end - begin
        )

    def tiles(low: int, high: int) -> list[Any]:
        return [
            span(i, max(b, low), min(e, high))
            for i, (b, e) in enumerate(runs)
            if max(b, low) < min(e, high)
        ]

    return tiles(0, len(sampled) - 1), tiles(1, len(sampled))
