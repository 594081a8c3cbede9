"""Any causal language model of PyTorch: a module that gives logits for token ids, as
Hugging Face's do (an output with `.logits`) or directly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from sluice_trainer.arrays import Step
from sluice_trainer.loop import Endpoint, Figures, annotation
from sluice_trainer.losses.autodiff import Padded, loss, pad
from sluice_trainer.losses.spec import LossSpec


class TorchBackend:
    """Trains a module with a torch optimiser.

    `reference` is a frozen module that KL is measured to. `temperature` is the one the data
    were sampled at. `max_norm` clips the gradient's norm. `hand_over` makes a sampler use a
    checkpoint's weights and says where.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        spec: LossSpec | None = None,
        *,
        reference: Any = None,
        temperature: float = 1.0,
        max_norm: float | None = None,
        device: str = "cpu",
        hand_over: Callable[[Path, int], Endpoint] | None = None,
    ) -> None:
        self.spec = spec or LossSpec()
        if self.spec.kl > 0 and reference is None:
            raise ValueError("kl needs a reference model")
        self.model, self.optimizer, self.reference = model.to(device), optimizer, reference
        self.temperature, self.max_norm, self.device = temperature, max_norm, device
        self._hand_over = hand_over

    def _batch(self, p: Padded) -> Padded:
        def tensor(x: Any, dtype: Any) -> Any:
            return torch.as_tensor(x, dtype=dtype, device=self.device)

        return Padded(
            tensor(p.inputs, torch.long),
            tensor(p.targets, torch.long),
            tensor(p.logprobs, torch.float32),
            tensor(p.advantages, torch.float32),
            tensor(p.mask, torch.float32),
            p.scale,
        )

    def _every_logprob(self, model: Any, inputs: Any) -> Any:
        out = model(inputs)
        logits = getattr(out, "logits", out) / self.temperature
        return torch.log_softmax(logits.float(), dim=-1)

    def _logprobs(self, model: Any, b: Padded) -> Any:
        with torch.no_grad():
            every = self._every_logprob(model, b.inputs)
            return every.gather(-1, b.targets[..., None])[..., 0]

    def train(self, step: Step) -> Figures:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        out, tokens = Figures(ratio_mean=0.0, ratio_max=0.0), 0
        mismatch = kl = 0.0
        spec = self.spec.asked(step.correction)
        for m in step.micro_batches:
            b = self._batch(pad(m))
            before = self._logprobs(self.model, b) if spec.correction else None
            reference = self._logprobs(self.reference, b) if self.spec.kl > 0 else None
            every = self._every_logprob(self.model, b.inputs)
            p = every.gather(-1, b.targets[..., None])[..., 0]
            value, figures = loss(
                torch, lambda x: x.detach(), spec, step, b, p, len(m.data), before, reference
            )
            value.backward()
            out.loss += float(value.detach())
            with torch.no_grad():
                entropy = -(every.exp() * every).sum(-1)
                out.entropy += float((entropy * b.mask).sum())
                rows = zip(m.data, p.detach().cpu().numpy(), entropy.cpu().numpy(), strict=True)
                out.annotations += [annotation(d, x, e) for d, x, e in rows]
            mismatch += float(figures["mismatch_sum"])
            kl += float(figures["kl_sum"])
            tokens += sum(int(d.mask.sum()) for d in m.data)
            out.ratio_mean += float(figures["ratio_sum"])
            out.ratio_max = max(out.ratio_max, float(figures["ratio_max"]))
            out.ratio_off = max(out.ratio_off, float(figures["ratio_off"]))
            out.clip_fraction_low += float(figures["clipped_low"])
            out.clip_fraction_high += float(figures["clipped_high"])
        for name in ("entropy", "ratio_mean", "clip_fraction_low", "clip_fraction_high"):
            setattr(out, name, getattr(out, name) / max(tokens, 1))
        out.extra["logprob_difference_mean"] = mismatch / max(tokens, 1)
        out.extra["kl_to_sampler"] = kl / max(tokens, 1)
        most = self.max_norm if self.max_norm is not None else float("inf")
        out.gradient_norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), most))
        self.optimizer.step()
        return out

    def save(self, folder: Path) -> None:
        torch.save(self.model.state_dict(), folder / "model.pt")
        torch.save(self.optimizer.state_dict(), folder / "optimizer.pt")
        torch.save(torch.get_rng_state(), folder / "rng.pt")

    def load(self, folder: Path) -> None:
        def read(name: str) -> Any:
            return torch.load(folder / name, map_location=self.device, weights_only=True)

        self.model.load_state_dict(read("model.pt"))
        self.optimizer.load_state_dict(read("optimizer.pt"))
        torch.set_rng_state(read("rng.pt").cpu())

    def hand_over(self, folder: Path, version: int) -> Endpoint:
        return self._hand_over(folder, version) if self._hand_over else Endpoint()
