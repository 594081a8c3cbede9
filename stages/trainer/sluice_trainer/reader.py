"""Steps from Kafka.

Reads `ppo-batches` with read_committed, so that what a killed batcher had not finished is
never seen, without a consumer group: a trainer keeps its place beside its weights
(`Step.resume`), because only there is it written together with what was done.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluice_trainer.arrays import ContractError, Step, step_from
from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.records import BATCHES, decode

log = logging.getLogger("sluice_trainer")


@dataclass(frozen=True)
class Kafka:
    """Where the brokers are. `options` are librdkafka's, for SASL and TLS among others; put
    secrets there from a file or the environment."""

    brokers: str
    namespace: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def topic(self, name: str) -> str:
        return self.namespace + name


@dataclass
class _Open:
    batch: pb.StepBatch
    micro: list[pb.MicroBatch] = field(default_factory=list)


class Assembler:
    """Puts the records of one run together into steps. It knows nothing of Kafka."""

    def __init__(self, run_id: str, positions: Mapping[int, int] | None = None) -> None:
        self.run_id = run_id
        self.positions = dict(positions or {})
        self._open: dict[tuple[int, int], _Open] = {}

    def record(
        self,
        partition: int,
        offset: int,
        key: bytes,
        value: bytes,
        headers: list[tuple[str, bytes]],
    ) -> Step | None:
        """Takes a record; gives the step that it completes."""
        self.positions[partition] = offset + 1
        if key != self.run_id.encode():
            return None
        try:
            return self._take(decode(value, headers))
        except ContractError as e:
            raise ContractError(f"{BATCHES} partition {partition} offset {offset}: {e}") from e

    def _take(self, m: pb.StepBatch | pb.MicroBatch) -> Step | None:
        place = (m.incarnation, m.step)
        if isinstance(m, pb.StepBatch):
            # A batcher that was killed and restored may announce a step again.
            self._open[place] = _Open(m)
        else:
            if place not in self._open:
                raise ContractError(
                    f"micro-batch {m.index} of step {m.step} without the StepBatch before it"
                )
            self._open[place].micro.append(m)
        now = self._open[place]
        if len(now.micro) < now.batch.micro_batches:
            return None
        del self._open[place]
        return step_from(now.batch, now.micro, dict(self.positions))


def _pairs(headers: Any) -> list[tuple[str, bytes]]:
    return [(k, v if isinstance(v, bytes) else b"") for k, v in headers or []]


class Reader:
    """Steps of one run, in order, for as long as one asks for them."""

    def __init__(
        self,
        kafka: Kafka,
        run_id: str,
        resume: Mapping[int, int] | None = None,
        *,
        prefetch_mb: int = 64,
    ) -> None:
        from confluent_kafka import Consumer

        self._kafka, self._topic = kafka, kafka.topic(BATCHES)
        self._assembler = Assembler(run_id, resume)
        self._consumer = Consumer(
            {
                # What has no place yet begins at the start; an offset that retention
                # removed is an error and not a silent jump.
                "auto.offset.reset": "error",
                "queued.max.messages.kbytes": prefetch_mb * 1024,
                **kafka.options,
                "bootstrap.servers": kafka.brokers,
                # librdkafka wants one; nothing is committed to it.
                "group.id": f"sluice-trainer-{uuid.uuid4()}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._assigned = False

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close()

    def _assign(self, stop: Callable[[], bool]) -> bool:
        from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

        said = ""
        while not stop():
            problem = "it does not exist: run `sluice apply`"
            try:
                found = self._consumer.list_topics(self._topic, timeout=5).topics[self._topic]
                if found.error is None and found.partitions:
                    self._consumer.assign(
                        [
                            TopicPartition(
                                self._topic, p, self._assembler.positions.get(p, OFFSET_BEGINNING)
                            )
                            for p in found.partitions
                        ]
                    )
                    self._assigned = True
                    return True
                problem = str(found.error or problem)
            except KafkaException as e:
                problem = str(e)
            if problem != said:
                said = problem
                log.warning("waiting for topic %s: %s", self._topic, problem)
            time.sleep(0.5)
        return False

    def steps(self, stop: Callable[[], bool] = lambda: False) -> Iterator[Step]:
        """Yields steps until `stop()` is true, which is asked several times a second."""
        from confluent_kafka import KafkaError, KafkaException

        if not self._assigned and not self._assign(stop):
            return
        while not stop():
            m = self._consumer.poll(0.2)
            if m is None:
                continue
            if (e := m.error()) is not None:
                if e.code() == KafkaError._AUTO_OFFSET_RESET:
                    raise ContractError(
                        f"{self._topic}: the place to go on from is gone (retention): {e.str()}. "
                        "Steps are lost; start from a checkpoint that is not so old, or a new run"
                    )
                if e.fatal():
                    raise KafkaException(e)
                log.warning("reading %s: %s; librdkafka tries again", self._topic, e.str())
                continue
            step = self._assembler.record(
                m.partition() or 0,
                m.offset() or 0,
                m.key() or b"",
                m.value() or b"",
                _pairs(m.headers()),
            )
            if step is not None:
                yield step
