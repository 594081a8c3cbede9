"""Trains on Sluice's PPO micro-batches: each batch once, whatever dies.

The parts can be used by themselves:

- `arrays`: a step as numpy arrays, checked.
- `reader`: steps from Kafka, committed ones only, from where one left off.
- `losses`: formulas, a reference in numpy, and jax and torch.
- `loop`: trains, keeps what was done beside the weights, answers; never twice, never not.
- `backends`: what trains: `jax`, `torch`, `files`; or a class of your own.
- `reward`: a Python function as the HTTP reward of a reward file.

schemas/TRAINER.md is the contract for those who write their own trainer from nothing.
"""

from sluice_trainer.arrays import ContractError, Datum, MicroBatch, Step, TokenReduction

__all__ = ["ContractError", "Datum", "MicroBatch", "Step", "TokenReduction"]
