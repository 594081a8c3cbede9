"""Any model that is a function of its parameters, with jax and optax."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from sluice_trainer.arrays import MicroBatch, Step
from sluice_trainer.loop import Annotation, Endpoint, Figures, annotation
from sluice_trainer.losses.autodiff import Padded, loss, pad
from sluice_trainer.losses.spec import LossSpec

#: (parameters, int32 token ids [data, positions]) -> logits [data, positions, vocabulary].
Apply = Callable[[Any, Any], Any]


def _as_jax(p: Padded) -> Padded:
    return Padded(
        jnp.asarray(p.inputs),  # type: ignore[arg-type]
        jnp.asarray(p.targets),  # type: ignore[arg-type]
        jnp.asarray(p.logprobs),  # type: ignore[arg-type]
        jnp.asarray(p.advantages),  # type: ignore[arg-type]
        jnp.asarray(p.mask),  # type: ignore[arg-type]
        p.scale,
    )


class JaxBackend:
    """Trains parameters with an optax optimiser.

    `reference` are the parameters that KL is measured to. `round_to` pads positions and data
    up, so that few shapes are compiled. `temperature` is the one the data were sampled at:
    behaviour logprobs are of the distribution that was sampled.
    """

    def __init__(
        self,
        apply: Apply,
        parameters: Any,
        optimizer: optax.GradientTransformation,
        spec: LossSpec | None = None,
        *,
        reference: Any = None,
        temperature: float = 1.0,
        round_to: int = 64,
        hand_over: Callable[[Path, int], Endpoint] | None = None,
    ) -> None:
        self.spec = spec or LossSpec()
        if self.spec.kl > 0 and reference is None:
            raise ValueError("kl needs reference parameters")
        self.apply, self.parameters, self.reference = apply, parameters, reference
        self.optimizer, self.temperature, self.round_to = optimizer, temperature, round_to
        self.state = optimizer.init(parameters)
        self._hand_over = hand_over
        self._logprobs = jax.jit(self._token_logprobs)
        self._gradients: dict[tuple[Any, ...], Any] = {}

    def _token_logprobs(self, parameters: Any, inputs: Any, targets: Any) -> Any:
        logits = self.apply(parameters, inputs) / self.temperature
        all_logprobs = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
        return jnp.take_along_axis(all_logprobs, targets[..., None], axis=-1)[..., 0]

    def _gradient_of(self, step: Step) -> Any:
        """The compiled loss and gradient for a step's constants."""
        spec = self.spec.asked(step.correction)
        key = (step.clip_low, step.clip_high, step.reduction, spec)
        if key not in self._gradients:

            def micro_loss(
                parameters: Any, arrays: Any, scale: Any, data: Any, before: Any, reference: Any
            ) -> Any:
                inputs, targets, logprobs, advantages, mask = arrays
                batch = Padded(inputs, targets, logprobs, advantages, mask, scale)
                logits = self.apply(parameters, batch.inputs) / self.temperature
                every = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
                p = jnp.take_along_axis(every, batch.targets[..., None], axis=-1)[..., 0]
                value, figures = loss(
                    jnp,
                    jax.lax.stop_gradient,
                    spec,
                    step,
                    batch,
                    p,
                    data,
                    before,
                    reference,
                )
                entropy = -(jnp.exp(every) * every).sum(-1)
                figures["entropy_sum"] = (entropy * batch.mask).sum()
                return value, (figures, p, entropy)

            self._gradients[key] = jax.jit(jax.value_and_grad(micro_loss, has_aux=True))
        return self._gradients[key]

    def gradient(self, step: Step, micro: list[MicroBatch] | None = None) -> tuple[Any, Figures]:
        """The gradient of a step, or of some of its micro-batches, and its figures."""
        function = self._gradient_of(step)
        total: Any = None
        value = 0.0
        sums = {
            "ratio_sum": 0.0,
            "entropy_sum": 0.0,
            "mismatch_sum": 0.0,
            "kl_sum": 0.0,
            "clipped_low": 0.0,
            "clipped_high": 0.0,
        }
        most = {"ratio_max": 0.0, "ratio_off": 0.0}
        tokens = 0
        annotations: list[Annotation] = []
        for m in step.micro_batches if micro is None else micro:
            padded = _as_jax(pad(m, to=self.round_to, rows=4))
            before = reference = None
            if self.spec.asked(step.correction).correction is not None:
                before = self._logprobs(self.parameters, padded.inputs, padded.targets)
            if self.spec.kl > 0:
                reference = self._logprobs(self.reference, padded.inputs, padded.targets)
            arrays = (
                padded.inputs,
                padded.targets,
                padded.logprobs,
                padded.advantages,
                padded.mask,
            )
            (v, (figures, p, entropy)), g = function(
                self.parameters, arrays, padded.scale, float(len(m.data)), before, reference
            )
            value += float(v)
            total = g if total is None else jax.tree.map(jnp.add, total, g)
            tokens += sum(int(d.mask.sum()) for d in m.data)
            rows = zip(m.data, np.asarray(p), np.asarray(entropy), strict=False)
            annotations += [annotation(d, x, e) for d, x, e in rows]
            for name in sums:
                sums[name] += float(figures[name])
            for name in most:
                most[name] = max(most[name], float(figures[name]))
        n = max(tokens, 1)
        return total, Figures(
            loss=value,
            ratio_mean=sums["ratio_sum"] / n,
            ratio_max=most["ratio_max"],
            ratio_off=most["ratio_off"],
            clip_fraction_low=sums["clipped_low"] / n,
            clip_fraction_high=sums["clipped_high"] / n,
            entropy=sums["entropy_sum"] / n,
            extra={
                "logprob_difference_mean": sums["mismatch_sum"] / n,
                "kl_to_sampler": sums["kl_sum"] / n,
            },
            annotations=annotations,
        )

    def train(self, step: Step) -> Figures:
        gradient, figures = self.gradient(step)
        figures.gradient_norm = float(optax.global_norm(gradient))
        updates, self.state = self.optimizer.update(gradient, self.state, self.parameters)
        self.parameters = optax.apply_updates(self.parameters, updates)
        return figures

    def save(self, folder: Path) -> None:
        for name, tree in (("parameters", self.parameters), ("optimizer", self.state)):
            leaves = jax.tree.leaves(tree)
            arrays: dict[str, Any] = {f"{i:06d}": np.asarray(x) for i, x in enumerate(leaves)}
            np.savez(folder / f"{name}.npz", **arrays)

    def load(self, folder: Path) -> None:
        for name in ("parameters", "state"):
            file = folder / ("optimizer.npz" if name == "state" else "parameters.npz")
            tree = getattr(self, name)
            leaves, shape = jax.tree.flatten(tree)
            with np.load(file) as saved:
                if len(saved.files) != len(leaves):
                    raise ValueError(f"{file} has {len(saved.files)} arrays, want {len(leaves)}")
                read = [jnp.asarray(saved[k]) for k in sorted(saved.files)]
            for i, (a, b) in enumerate(zip(read, leaves, strict=True)):
                if a.shape != jnp.shape(b):
                    raise ValueError(f"{file}: array {i} is {a.shape}, want {jnp.shape(b)}")
            setattr(self, name, jax.tree.unflatten(shape, read))

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        return self._hand_over(folder, version) if self._hand_over else Endpoint()
