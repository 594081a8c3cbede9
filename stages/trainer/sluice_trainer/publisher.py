"""What a trainer answers, written to Kafka."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.reader import Kafka
from sluice_trainer.records import ANNOTATIONS, REPORTS, UPDATES, Answer, encode

log = logging.getLogger("sluice_trainer")


class Publisher(Protocol):
    """Takes answers and returns when they are durable."""

    def report(self, m: pb.TrainerReport) -> None: ...

    def update(self, m: pb.PolicyUpdate) -> None: ...

    def annotate(self, m: pb.TrainerAnnotation) -> None: ...


class NotPublishedError(Exception):
    """The brokers did not take an answer before the trainer was told to stop."""


class KafkaPublisher:
    """Writes answers with acks=all, and waits for each for as long as it takes: without its
    answer a step is not done, and the run stands still."""

    def __init__(self, kafka: Kafka, stop: Callable[[], bool] = lambda: False) -> None:
        from confluent_kafka import Producer

        self._kafka, self._stop = kafka, stop
        self._producer = Producer(
            {
                "compression.type": "zstd",
                **kafka.options,
                "bootstrap.servers": kafka.brokers,
                "enable.idempotence": True,
                "acks": "all",
            }
        )

    def report(self, m: pb.TrainerReport) -> None:
        self._write(REPORTS, m)

    def update(self, m: pb.PolicyUpdate) -> None:
        self._write(UPDATES, m)

    def annotate(self, m: pb.TrainerAnnotation) -> None:
        """Like the others, but waited for by the next of them."""
        self._write(ANNOTATIONS, m)

    def _write(self, topic: str, m: Answer) -> None:
        key, value, headers = encode(m)
        name = self._kafka.topic(topic)
        wait = 0.25
        while True:
            outcome: list[object] = []

            def delivered(error: object, _: object, to: list[object] = outcome) -> None:
                to.append(error)

            self._producer.produce(
                name,
                value,
                key,
                headers=list(headers),
                on_delivery=delivered,
            )
            while not outcome:
                self._producer.poll(0.2)
                if self._stop() and not outcome:
                    self._producer.flush(5)
                    break
            if outcome and outcome[0] is None:
                return
            problem = outcome[0] if outcome else "no acknowledgement"
            if self._stop():
                raise NotPublishedError(f"{name}: {problem}")
            log.warning("cannot publish to %s, trying again: %s", name, problem)
            time.sleep(wait)
            wait = min(2 * wait, 5.0)
