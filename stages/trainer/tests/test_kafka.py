"""Against a broker that speaks Kafka's protocol: sluice-broker, built from this checkout."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_trainer.ledger import Ledger
from sluice_trainer.loop import Trainer
from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.publisher import KafkaPublisher
from sluice_trainer.reader import Kafka, Reader
from sluice_trainer.records import encode
from tests.conftest import records
from tests.test_loop import CountingBackend, Fuse

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
BROKER = Path(__file__).parents[3] / "bin" / "sluice-broker"
ONE = ([5, 6, 7], [0, 1], [0, -0.5], 2.0)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    if not BROKER.exists():
        if os.environ.get("CI"):
            pytest.fail(f"{BROKER} is missing: make build")
        pytest.skip(f"{BROKER} is missing: make build")
    folder = tmp_path_factory.mktemp("broker")
    ready = folder / "ready.json"
    process = subprocess.Popen(
        [
            BROKER,
            f"--data-dir={folder / 'data'}",
            "--port=0",
            f"--ready-file={ready}",
        ],
        stderr=subprocess.PIPE,
    )
    try:
        deadline = time.monotonic() + 60
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"sluice-broker did not start: {process.stderr.read()!r}")
            time.sleep(0.05)
        said = json.loads(ready.read_text())
        brokers = said["kafka"]
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": brokers})
        topics = [NewTopic(f"t.{n}", 4, 1) for n in ("ppo-batches", "policy-updates")]
        topics += [NewTopic(f"t.trainer-{n}", 1, 1) for n in ("reports", "annotations")]
        for future in admin.create_topics(topics).values():
            future.result(30)
        yield Kafka(brokers, "t.")
    finally:
        process.terminate()
        process.wait(30)


def write(kafka: Kafka, messages: list[pb.StepBatch | pb.MicroBatch], commit: bool) -> None:
    """One transaction of the batcher."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": kafka.brokers, "transactional.id": "batcher"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for m in messages:
        key, value, headers = encode(m)
        producer.produce(kafka.topic("ppo-batches"), value, key, headers=headers)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


def test_committed_steps_are_trained_once_and_answered(kafka: Kafka, tmp_path: Path) -> None:
    first, lost, second = (
        records([[ONE], [ONE]], step=1),
        records([[ONE]], step=2),
        records([], step=2),
    )
    write(kafka, [first[0], *first[1]], commit=True)
    write(kafka, [lost[0], *lost[1]], commit=False)
    write(kafka, [second[0]], commit=True)

    def life(want: int) -> Trainer:
        trainer = Trainer(
            "r",
            CountingBackend(Fuse(0)),
            Ledger(tmp_path, "r"),
            KafkaPublisher(kafka),
            annotate=True,
        )
        trainer.start()
        deadline = time.monotonic() + 60

        def stop() -> bool:
            done = trainer.entry is not None and trainer.entry.step >= want
            return done or time.monotonic() > deadline

        with Reader(kafka, "r", trainer.resume) as reader:
            trainer.run(reader.steps(stop))
        return trainer

    life(1)
    trainer = life(2)
    assert trainer.entry is not None
    assert trainer.entry.trained is False, "the aborted step 2 was seen"
    third = records([[ONE]], step=3)
    write(kafka, [third[0], *third[1]], commit=True)
    backend = life(3).backend
    assert isinstance(backend, CountingBackend)
    assert backend.applied == [[0, 1], [0, 3]]

    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": kafka.brokers, "group.id": "t", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([kafka.topic("policy-updates"), kafka.topic("trainer-annotations")])
    annotated = set[tuple[int, int]]()
    answers: dict[int, tuple[int, bool]] = {}
    deadline = time.monotonic() + 60
    while (set(answers) != {1, 2, 3} or len(annotated) < 3) and time.monotonic() < deadline:
        m = consumer.poll(0.5)
        if m is None or m.error():
            continue
        if m.topic() == kafka.topic("trainer-annotations"):
            assert m.key() == b"r"
            a = pb.TrainerAnnotation.FromString(m.value())
            annotated.add((a.step, a.copy))
            continue
        u = pb.PolicyUpdate.FromString(m.value())
        assert m.key() == f"r.0/{u.step}".encode()
        assert answers.setdefault(u.step, (u.policy_version, u.trained)) == (
            u.policy_version,
            u.trained,
        )
    consumer.close()
    assert annotated == {(1, 1), (1, 2), (3, 1)}
    assert answers == {1: (1, True), 2: (1, False), 3: (2, True)}
