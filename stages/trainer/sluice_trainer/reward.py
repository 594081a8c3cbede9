"""A Python function as a reward.

    from sluice_trainer.reward import reward, serve

    @reward
    def brief(t):
        return 1.0 if t.correct and len(t.final_text) < 2000 else -1.0

    serve(brief, port=8900)

and in the reward file of reward-scorer: `{name: brief, kind: http, url: "http://127.0.0.1:8900/"}`.
A function decorated with `batch=True` is given a list and returns one, for reward models.
None, an exception or a number that is not finite is 'no reward': the trajectory stays
ungraded, with the reason. It is never 0.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger("sluice_trainer")

#: The largest request body that is read, in bytes.
MAX_BODY = 256 << 20


@dataclass(frozen=True)
class Judged:
    """What a reward is told of a trajectory."""

    final_text: str
    answer: str
    reference: str
    correct: bool
    valid_format: bool
    verdict: str
    end_reason: str
    data_source: str
    question_id: str
    code_calls: int
    code_errors: int
    executions: int
    first_call_failed: bool
    turns: int
    tokens: int
    truncated: bool


_TYPES: dict[str, type] = {"str": str, "bool": bool, "int": int}


def judged_from(raw: Any) -> Judged:
    """Reads a trajectory of a request. Fields that are not known here are left out."""
    if not isinstance(raw, dict):
        raise ValueError("a trajectory is not an object")
    values: dict[str, Any] = {}
    for f in fields(Judged):
        want = _TYPES[str(f.type)]
        if type(raw.get(f.name)) is not want:
            raise ValueError(f"{f.name} is {raw.get(f.name)!r}, want {want.__name__}")
        values[f.name] = raw[f.name]
    return Judged(**values)


One = Callable[[Judged], "float | None"]
Many = Callable[[Sequence[Judged]], "Sequence[float | None]"]


class Reward:
    """A reward function, called by trajectory or by batch."""

    def __init__(self, name: str, many: Many, one: One | None = None) -> None:
        self.name, self._many, self._one = name, many, one

    def __call__(self, t: Judged) -> float | None:
        return self._one(t) if self._one else self._many([t])[0]

    def rewards(self, trajectories: Sequence[Judged]) -> list[float | None]:
        """One reward per trajectory; None where there is none."""
        try:
            out = list(self._many(trajectories))
        except Exception:
            if self._one is None:
                log.exception("reward %s failed on a batch of %d", self.name, len(trajectories))
                return [None] * len(trajectories)
            raise
        if len(out) != len(trajectories):
            log.error("reward %s gave %d for %d", self.name, len(out), len(trajectories))
            return [None] * len(trajectories)
        return [self._usable(r) for r in out]

    def _usable(self, r: Any) -> float | None:
        if r is None:
            return None
        try:
            value = float(r)
        except (TypeError, ValueError, OverflowError):
            log.error("reward %s gave %r, which is no number", self.name, r)
            return None
        if not math.isfinite(value):
            log.error("reward %s gave %r", self.name, r)
            return None
        return value


def reward(function: Any = None, *, batch: bool = False) -> Any:
    """Makes a Reward of a function of one trajectory, or of a list of them with batch=True."""
    if function is None:
        return lambda f: reward(f, batch=batch)
    if batch:
        return Reward(function.__name__, function)

    def each(trajectories: Sequence[Judged]) -> list[float | None]:
        out: list[float | None] = []
        for t in trajectories:
            try:
                out.append(function(t))
            except Exception:
                log.exception("reward %s failed on question %s", function.__name__, t.question_id)
                out.append(None)
        return out

    return Reward(function.__name__, each, function)


def handler(r: Reward, token: str | None = None) -> type[BaseHTTPRequestHandler]:
    """The HTTP side of a reward."""
    # Rewards are the user's, and few are made to be called by several threads at once.
    one_at_a_time = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = 60

        def do_POST(self) -> None:
            if token is not None and self.headers.get("Authorization") != f"Bearer {token}":
                return self._answer(401, {"error": "the bearer token is missing or wrong"})
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > MAX_BODY:
                return self._answer(413, {"error": f"want a Content-Length up to {MAX_BODY}"})
            try:
                body = json.loads(self.rfile.read(int(length)))
                raw = body["trajectories"] if isinstance(body, dict) else None
                if not isinstance(raw, list):
                    raise ValueError("want an object with a list of trajectories")
                trajectories = [judged_from(t) for t in raw]
            except (ValueError, KeyError) as e:
                return self._answer(400, {"error": str(e)})
            with one_at_a_time:
                rewards = r.rewards(trajectories)
            return self._answer(200, {"rewards": rewards})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            log.debug(format, *args)

    return Handler


def server(
    r: Reward, port: int = 0, host: str = "127.0.0.1", token: str | None = None
) -> ThreadingHTTPServer:
    """A server of a reward that is not started yet: its address is `server_address`."""
    return ThreadingHTTPServer((host, port), handler(r, token))


def serve(r: Reward, port: int, host: str = "127.0.0.1", token: str | None = None) -> None:
    """Serves a reward until it is interrupted."""
    with server(r, port, host, token) as s:
        log.info("reward %s is served at http://%s:%d/", r.name, host, port)
        s.serve_forever()
