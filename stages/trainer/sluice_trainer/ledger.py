"""Checkpoints that know which step they hold.

A checkpoint is a folder with what the backend saved and `ledger.json`: the step that was
applied, the answer to it, and where to go on reading. It is written aside, synced, and
renamed; a folder without `ledger.json` under its final name does not exist. So the weights
and the knowledge of what was applied to them are one thing: whatever is killed in whatever
moment, a step is applied once, and answered at least once with the same answer.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

_NAME = re.compile(r"^step-(\d{10})-(\d{20})$")
_FILE = "ledger.json"


class LedgerError(ValueError):
    """A checkpoint folder that cannot be gone on from."""


@dataclass(frozen=True)
class Entry:
    """What was done, and what is to be answered."""

    run_id: str
    incarnation: int
    step: int
    policy_version: int
    trained: bool
    #: Of the batch that was applied, in hex; empty: of before there were digests.
    digest: str = ""
    #: The trainer's figures of the step.
    report: Mapping[str, float] = field(default_factory=dict)
    #: Offset by partition of ppo-batches (JSON keys are text).
    resume: Mapping[str, int] = field(default_factory=dict)

    @property
    def place(self) -> tuple[int, int]:
        return self.incarnation, self.step

    @property
    def name(self) -> str:
        return f"step-{self.incarnation:010d}-{self.step:020d}"


class Ledger:
    """The checkpoints of one run in a folder; the last `keep` are kept."""

    def __init__(self, folder: Path, run_id: str, keep: int = 3) -> None:
        if keep < 1:
            raise LedgerError(f"keep {keep}: at least the last checkpoint is needed")
        self.folder, self.run_id, self.keep = folder, run_id, keep
        folder.mkdir(parents=True, exist_ok=True)
        for half in folder.glob("*.tmp"):
            shutil.rmtree(half)

    def all(self) -> list[Path]:
        """Whole checkpoints, the oldest first."""
        found = [p for p in self.folder.iterdir() if _NAME.match(p.name) and (p / _FILE).is_file()]
        return sorted(found, key=lambda p: p.name)

    def last(self) -> tuple[Entry, Path] | None:
        """The newest checkpoint."""
        for path in reversed(self.all()):
            try:
                raw = json.loads((path / _FILE).read_text())
                entry = Entry(**raw)
            except (ValueError, TypeError) as e:
                raise LedgerError(f"{path / _FILE}: {e}") from e
            if entry.run_id != self.run_id:
                raise LedgerError(
                    f"{path} is of run {entry.run_id!r}, not {self.run_id!r}: "
                    "name another folder, or the run it belongs to"
                )
            return entry, path
        return None

    def write(
        self,
        entry: Entry,
        save: Callable[[Path], None],
        same: Path | None = None,
        leave: Collection[str] = (),
    ) -> Path:
        """Saves a checkpoint, whole or not at all, and removes old ones. With `same`, what
        would be saved is what that checkpoint has, but for the files named in `leave`."""
        final = self.folder / entry.name
        half = self.folder / (entry.name + ".tmp")
        if half.exists():
            shutil.rmtree(half)
        half.mkdir()
        if same is not None:
            shutil.copytree(
                same,
                half,
                ignore=lambda _, names: {_FILE, *leave} & set(names),
                copy_function=os.link,
                dirs_exist_ok=True,
            )
        else:
            save(half)
        (half / _FILE).write_text(json.dumps(asdict(entry), indent=1, sort_keys=True) + "\n")
        for path in [*half.rglob("*"), half]:
            _sync(path)
        if final.exists():
            shutil.rmtree(final)
        half.rename(final)
        _sync(self.folder)
        for old in self.all()[: -self.keep]:
            shutil.rmtree(old)
        return final


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
