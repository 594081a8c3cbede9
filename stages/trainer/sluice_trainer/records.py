"""Kafka records as Sluice writes them: which message is in one, and how to write an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from google.protobuf.message import DecodeError, Message

from sluice_trainer.arrays import ContractError
from sluice_trainer.proto import training_pb2 as pb

#: The version of the contracts that this package reads and writes.
SCHEMA = 1

BATCHES = "ppo-batches"
UPDATES = "policy-updates"
REPORTS = "trainer-reports"
ANNOTATIONS = "trainer-annotations"

_TYPES: Mapping[str, type[Message]] = {
    "StepBatch": pb.StepBatch,
    "MicroBatch": pb.MicroBatch,
}


class Answer(Protocol):
    """A message that belongs to a run."""

    run_id: str

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...  # noqa: N802


Headers = Sequence[tuple[str, bytes]]


def decode(value: bytes, headers: Headers) -> pb.StepBatch | pb.MicroBatch:
    """Reads a record of ppo-batches. Its type stands in the header sluice-type, because the
    topic carries two; a sluice-schema above ours is one we might misread."""
    by_name = dict(headers)
    name = by_name.get("sluice-type", b"").decode("utf-8", "replace")
    schema = by_name.get("sluice-schema", b"1").decode("utf-8", "replace")
    if not schema.isdecimal() or int(schema) > SCHEMA:
        raise ContractError(f"record of schema {schema!r}, this package reads up to {SCHEMA}")
    if name not in _TYPES:
        raise ContractError(f"record of type {name!r}, want one of {sorted(_TYPES)}")
    m = _TYPES[name]()
    try:
        m.ParseFromString(value)
    except DecodeError as e:
        raise ContractError(f"{name} cannot be read: {e}") from e
    assert isinstance(m, (pb.StepBatch, pb.MicroBatch))
    return m


def encode(m: Answer) -> tuple[bytes, bytes, list[tuple[str, str | bytes | None]]]:
    """Key, value and headers of an answer."""
    headers: list[tuple[str, str | bytes | None]] = [
        ("sluice-type", type(m).__name__.encode()),
        ("sluice-schema", str(SCHEMA).encode()),
    ]
    # policy-updates is compacted: the newest answer to each step is kept.
    key = f"{m.run_id}.{m.incarnation}/{m.step}" if isinstance(m, pb.PolicyUpdate) else m.run_id
    return key.encode(), m.SerializeToString(deterministic=True), headers
