"""`sluice-trainer`: what can be done without writing Python."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from sluice_trainer.arrays import ContractError
from sluice_trainer.ledger import Ledger, LedgerError
from sluice_trainer.loop import Backend, Trainer
from sluice_trainer.publisher import KafkaPublisher, NotPublishedError
from sluice_trainer.reader import Kafka, Reader

log = logging.getLogger("sluice_trainer")

#: Exit codes.
OK, FAILED, USAGE, HARD_STOP = 0, 1, 2, 4


def _options(path: str | None) -> dict[str, Any]:
    if path is None:
        return {}
    options = json.loads(Path(path).read_text())
    if not isinstance(options, dict):
        raise ValueError(f"{path}: want a JSON object of librdkafka's options")
    return options


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="sluice-trainer", description=__doc__)
    commands = p.add_subparsers(dest="command", required=True)

    def kafka(c: argparse.ArgumentParser) -> None:
        c.add_argument("--brokers", default=os.environ.get("SLUICE_BROKERS", "127.0.0.1:9092"))
        c.add_argument("--namespace", default=os.environ.get("SLUICE_NAMESPACE", ""))
        c.add_argument(
            "--kafka-options", metavar="FILE", help="JSON of librdkafka's options (SASL, TLS)"
        )
        c.add_argument("--run-id", required=True)

    train = commands.add_parser("train", help="train a backend that a function of yours makes")
    kafka(train)
    train.add_argument(
        "--backend", required=True, metavar="MODULE:FUNCTION", help="called without arguments"
    )
    train.add_argument("--checkpoints", required=True, type=Path)
    train.add_argument("--keep", type=int, default=3)

    train.add_argument(
        "--annotate",
        action="store_true",
        help="publish the trainer's logprob and entropy of every token (trainer-annotations)",
    )

    files = commands.add_parser("files", help="hand steps to a trainer that reads folders")
    kafka(files)
    files.add_argument("--out", required=True, type=Path, help="where steps are written")
    files.add_argument("--weights", required=True, type=Path, help="where weights come back")
    files.add_argument("--world", type=int, default=1, help="data-parallel ranks")
    files.add_argument("--checkpoints", required=True, type=Path)
    files.add_argument("--keep", type=int, default=3)

    show = commands.add_parser("show", help="print the steps of a run as they are read")
    kafka(show)
    show.add_argument("--count", type=int, default=0, help="end after so many; 0: go on")

    rewards = commands.add_parser("reward", help="serve a reward function over HTTP")
    rewards.add_argument("reward", metavar="MODULE:NAME")
    rewards.add_argument("--port", type=int, required=True)
    rewards.add_argument("--host", default="127.0.0.1")
    rewards.add_argument("--token-file", type=Path, help="bearer token that requests must have")
    return p


def _named(name: str) -> Any:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise ValueError(f"{name!r}: want MODULE:NAME")
    sys.path.insert(0, os.getcwd())
    return getattr(importlib.import_module(module), attribute)


def _stopper() -> Callable[[], bool]:
    stopping: list[int] = []

    def stop(number: int, _: FrameType | None) -> None:
        if stopping:
            os._exit(HARD_STOP)
        stopping.append(number)

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    return lambda: bool(stopping)


def _train(args: argparse.Namespace, kafka: Kafka, stop: Callable[[], bool]) -> None:
    backend: Backend
    if args.command == "files":
        from sluice_trainer.backends.files import FilesBackend, StoppedError

        backend = FilesBackend(args.out, args.weights, world=args.world, stop=stop)
        stopped: tuple[type[Exception], ...] = (NotPublishedError, StoppedError)
    else:
        backend = _named(args.backend)()
        stopped = (NotPublishedError,)
    ledger = Ledger(args.checkpoints, args.run_id, args.keep)
    trainer = Trainer(
        args.run_id,
        backend,
        ledger,
        KafkaPublisher(kafka, stop),
        annotate=args.command == "train" and args.annotate,
    )
    try:
        trainer.start()
        with Reader(kafka, args.run_id, trainer.resume) as reader:
            trainer.run(reader.steps(stop))
    except stopped as e:
        # The ledger knows: the next start says or does it again.
        log.info("stopped: %s", e)


def _show(args: argparse.Namespace, kafka: Kafka, stop: Callable[[], bool]) -> None:
    with Reader(kafka, args.run_id) as reader:
        for seen, step in enumerate(reader.steps(stop), 1):
            line = {
                "run": step.run_id,
                "incarnation": step.incarnation,
                "step": step.number,
                "micro_batches": len(step.micro_batches),
                "data": step.data,
                "n": step.n,
                "loss_tokens": step.loss_tokens,
                "padded_tokens": sum(m.padded_tokens for m in step.micro_batches),
                "reduction": step.reduction.value,
                "clip": [step.clip_low, step.clip_high],
                "policy_versions": [step.policy_version_min, step.policy_version_max],
            }
            print(json.dumps(line), flush=True)
            if seen == args.count:
                return


def main(argv: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done or stopped, 1 failed, 2 wrong use, 4 stopped hard."""
    args = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        if args.command == "reward":
            from sluice_trainer.reward import serve

            token = args.token_file.read_text().strip() if args.token_file else None
            serve(_named(args.reward), args.port, args.host, token)
            return OK
        kafka = Kafka(args.brokers, args.namespace, _options(args.kafka_options))
    except (ValueError, OSError, ImportError, AttributeError) as e:
        print(f"sluice-trainer: {e}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return OK
    stop = _stopper()
    try:
        if args.command == "show":
            _show(args, kafka, stop)
        else:
            _train(args, kafka, stop)
    except (ContractError, LedgerError) as e:
        log.error("%s", e)
        return FAILED
    return OK
