"""Rewards over HTTP, as reward-scorer asks for them."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sluice_trainer.reward import Judged, Reward, reward, server

TRAJECTORY: dict[str, Any] = {
    "final_text": r"so \boxed{4}",
    "answer": "4",
    "reference": "4",
    "correct": True,
    "valid_format": True,
    "verdict": "equal",
    "end_reason": "answer",
    "data_source": "d",
    "question_id": "q",
    "code_calls": 1,
    "code_errors": 0,
    "executions": 1,
    "first_call_failed": False,
    "turns": 2,
    "tokens": 90,
    "truncated": False,
}


@contextmanager
def served(r: Reward, token: str | None = None) -> Iterator[str]:
    with server(r, token=token) as s:
        thread = threading.Thread(target=s.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{s.server_address[1]}/"
        finally:
            s.shutdown()


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(url, raw, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


@reward
def brief(t: Judged) -> float | None:
    if t.question_id == "raises":
        raise RuntimeError("no")
    if t.question_id == "none":
        return None
    if t.question_id == "nan":
        return float("nan")
    return 1.0 if t.correct else -1.0


def test_each_trajectory_has_its_reward_or_none() -> None:
    with served(brief) as url:
        asked = [
            {**TRAJECTORY, "question_id": q, "correct": c}
            for q, c in (("a", True), ("raises", True), ("b", False), ("none", True), ("nan", True))
        ]
        asked[0]["a_field_of_tomorrow"] = 1
        assert post(url, {"trajectories": asked}) == (200, {"rewards": [1, None, -1, None, None]})
    assert brief(Judged(**TRAJECTORY)) == 1


def test_a_batch_function_fails_as_a_batch() -> None:
    @reward(batch=True)
    def model(ts: list[Judged]) -> list[float]:
        if len(ts) == 3:
            raise RuntimeError("out of memory")
        return [0.5] * (1 if len(ts) == 2 else len(ts))

    with served(model) as url:
        for count, want in ((1, [0.5]), (2, [None, None]), (3, [None] * 3)):
            assert post(url, {"trajectories": [TRAJECTORY] * count})[1] == {"rewards": want}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "Expecting"),
        ([], "list of trajectories"),
        ({"trajectories": [1]}, "not an object"),
        ({"trajectories": [{**TRAJECTORY, "correct": "yes"}]}, "correct is 'yes'"),
        ({"trajectories": [{**TRAJECTORY, "turns": True}]}, "turns is True"),
    ],
)
def test_what_is_no_request_is_refused(body: Any, says: str) -> None:
    with served(brief) as url:
        status, answer = post(url, body)
        assert (status, says in answer["error"]) == (400, True), answer


def test_a_token_keeps_others_out() -> None:
    with served(brief, token="secret") as url:
        assert post(url, {"trajectories": [TRAJECTORY]})[0] == 401
        got = post(url, {"trajectories": [TRAJECTORY]}, {"Authorization": "Bearer secret"})
        assert got == (200, {"rewards": [1]})
