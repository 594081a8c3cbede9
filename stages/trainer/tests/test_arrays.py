"""Reading records, and refusing what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sluice_trainer.arrays import ContractError, TokenReduction, datum_from, step_from
from sluice_trainer.proto import training_pb2 as pb
from sluice_trainer.reader import Assembler
from sluice_trainer.records import decode, encode
from tests.conftest import records

ONE = ([5, 6, 7, 8], [0, 1, 1], [0, -0.5, -1.5], 2.0)
TWO = ([5, 6, 9], [0, 1], [0, -0.25], -2.0)


def test_a_step_is_read_as_it_was_written() -> None:
    step = step_from(*records([[ONE, TWO]], n=4))
    assert (step.run_id, step.number, step.n, step.data, step.loss_tokens) == ("r", 1, 4, 2, 3)
    assert step.reduction is TokenReduction.SUM
    d = step.micro_batches[0].data[0]
    assert d.inputs.tolist() == [5, 6, 7]
    assert d.targets.tolist() == [6, 7, 8]
    assert d.mask.tolist() == [False, True, True]
    assert d.logprobs.tolist() == [0, -0.5, -1.5]
    # 2 of N = 4 in this micro-batch.
    assert d.advantages.tolist() == [0, 1, 1]
    assert step.micro_batches[0].padded_tokens == 6
    with pytest.raises(ValueError, match="read-only"):
        d.inputs[0] = 1


def test_parts_cover_a_step_whatever_their_number() -> None:
    step = step_from(*records([[ONE], [TWO], [ONE], [TWO], [ONE]]))
    for world in range(1, 8):
        parts = [m.index for rank in range(world) for m in step.part(rank, world)]
        assert sorted(parts) == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="rank 2 of 2"):
        step.part(2, 2)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("input_tokens", b"\1\2\3", "input_tokens has 3 bytes"),
        ("target_tokens", np.array([9, 9, 9], "<u4").tobytes(), "shifted by one"),
        ("loss_mask", b"\0\2\1", "neither 0 nor 1"),
        ("loss_mask", b"\0\0\0", "no token to train on"),
        ("behaviour_logprobs", np.array([0, np.nan, -1], "<f4").tobytes(), "not finite"),
        ("behaviour_logprobs", np.array([0, 0.5, -1], "<f4").tobytes(), "above 0"),
        ("behaviour_logprobs", np.array([-1, -1, -1], "<f4").tobytes(), "not 0 where loss_mask"),
        ("advantages", np.array([0, np.inf, 1], "<f4").tobytes(), "not finite"),
        ("advantages", np.array([1, 1, 1], "<f4").tobytes(), "not 0 where loss_mask"),
    ],
)
def test_a_datum_that_breaks_the_contract_is_refused(field: str, value: bytes, says: str) -> None:
    _, micro = records([[ONE]])
    m = micro[0].data[0]
    setattr(m, field, value)
    with pytest.raises(ContractError, match=says):
        datum_from(m)


def test_a_step_that_breaks_the_contract_is_refused() -> None:
    for change, says in (
        (lambda b, m: setattr(b, "token_reduction", 0), "token reduction"),
        (lambda b, m: setattr(b, "clip_low", 1.5), "clip bounds"),
        (lambda b, m: m.pop(), "micro-batches"),
        (lambda b, m: m.append(m[0]), "micro-batches"),
        (lambda b, m: setattr(m[0], "step", 9), "is of"),
        (lambda b, m: setattr(m[0], "scale", 0.9), "scale"),
        (lambda b, m: setattr(b, "loss_tokens", 5), "announced"),
        (lambda b, m: m[1].ClearField("data"), "empty"),
    ):
        batch, micro = records([[ONE], [TWO]])
        change(batch, micro)
        with pytest.raises(ContractError, match=says):
            step_from(batch, micro)


def test_records_of_one_run_become_steps_in_order() -> None:
    wire = []
    for run in ("other", "r"):
        for number in (1, 2):
            batch, micro = records([[ONE], [TWO]] if number == 1 else [], run=run, step=number)
            wire += [encode(m) for m in (batch, *micro)]
    a = Assembler("r")
    steps = []
    for offset, (key, value, headers) in enumerate(wire):
        got = a.record(0, 2 * offset, key, value, headers)  # type: ignore[arg-type]
        if got is not None:
            steps.append(got)
    assert [(s.number, s.data) for s in steps] == [(1, 2), (2, 0)]
    # The offset after the record that completed each.
    assert [s.resume for s in steps] == [{0: 13}, {0: 15}]


def test_a_micro_batch_alone_and_unknown_records_are_named_with_their_place() -> None:
    _, micro = records([[ONE]])
    key, value, headers = encode(micro[0])
    a = Assembler("r")
    with pytest.raises(ContractError, match=r"partition 3 offset 9: micro-batch 0 .* without"):
        a.record(3, 9, key, value, headers)  # type: ignore[arg-type]
    for bad, says in (
        ([], "type ''"),
        ([("sluice-type", b"Prompt")], "type 'Prompt'"),
        ([("sluice-type", b"StepBatch"), ("sluice-schema", b"2")], "schema '2'"),
        ([("sluice-type", b"StepBatch"), ("sluice-schema", b"x")], "schema 'x'"),
    ):
        with pytest.raises(ContractError, match=says):
            decode(value, bad)
    with pytest.raises(ContractError, match="cannot be read"):
        decode(b"\xff\xff", [("sluice-type", b"StepBatch")])


def golden(name: str) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A record as the Go side writes it, from its own golden files: headers in hexadecimal,
    then the value as a dump."""
    path = Path(__file__).parents[3] / "schemas" / "codec" / "testdata" / f"{name}.golden"
    head, _, dump = path.read_text().partition("value\n")
    value = b"".join(bytes.fromhex(line[10:58]) for line in dump.splitlines())
    headers = [
        (key, bytes.fromhex(raw))
        for key, _, raw in (line.partition(" ") for line in head.splitlines())
        if key.startswith("sluice-")
    ]
    return value, headers


def test_what_the_go_side_writes_is_read() -> None:
    batch = decode(*golden("StepBatch"))
    assert isinstance(batch, pb.StepBatch)
    assert (batch.run_id, batch.step, batch.micro_batches, batch.n) == ("demo", 3, 1, 2)
    micro = decode(*golden("MicroBatch"))
    assert isinstance(micro, pb.MicroBatch)
    d = datum_from(micro.data[0])
    assert d.inputs.tolist() == [1, 2]
    assert d.targets.tolist() == [2, 3]
    assert d.logprobs.tolist() == [0, -0.5]
    assert d.advantages.tolist() == [0, 1]
    assert d.mask.tolist() == [False, True]
