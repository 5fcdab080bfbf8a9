"""The ledger: every benchmark with all that it depended on, answer by answer, in SQLite."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.bench.setup import Setup

if TYPE_CHECKING:
    from app.core.database import Database

MIGRATIONS = (
    """
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        kind TEXT NOT NULL,
        identity TEXT NOT NULL,
        config_hash TEXT NOT NULL,
        settings TEXT NOT NULL,
        setup TEXT NOT NULL,
        started_at REAL NOT NULL,
        finished_at REAL,
        result TEXT
    );
    CREATE INDEX runs_by_identity ON runs (identity, started_at);
    CREATE TABLE answers (
        id INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        item TEXT NOT NULL,
        measured_at REAL NOT NULL,
        answer TEXT NOT NULL,
        UNIQUE (run, item)
    );
    """,
)


@dataclass(frozen=True, slots=True)
class Run:
    """One benchmark. Times are Unix seconds; `finished_at` and `result` are None while it runs
    or where it was broken off."""

    id: int
    kind: str
    identity: str
    """Equal for runs whose figures may be compared: same kind, settings, model, engine, switches
    and machine."""
    config_hash: str
    """Equal for runs of the same model with the same switches and engine version."""
    settings: dict[str, Any]
    setup: dict[str, Any]
    started_at: float
    finished_at: float | None
    result: dict[str, Any] | None


class Ledger:
    """ledger.db in the data folder. Every method raises BridgeError where the file fails."""

    def __init__(self, path: Path | None = None) -> None:
        from app.core.database import open_database
        from engine_bridge import paths

        self._db: Database = open_database(path or paths.data_dir() / "ledger.db", MIGRATIONS)

    @property
    def notice(self) -> str:
        """What the user must know of the file's opening; usually empty."""
        return str(self._db.notice)

    def close(self) -> None:
        self._db.close()

    def begin(self, kind: str, settings: dict[str, Any], setup: Setup) -> Run:
        """A new run, written at once."""
        identity = _digest(kind, settings, setup.comparable())
        now = time.time()
        with self._db.transaction():
            found = self._db.execute(
                "INSERT INTO runs (kind, identity, config_hash, settings, setup, started_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    kind,
                    identity,
                    config_hash(setup),
                    json.dumps(settings),
                    json.dumps(setup.as_dict()),
                    now,
                ),
            )
        assert found.lastrowid is not None
        run = self.get(found.lastrowid)
        assert run is not None
        return run

    def unfinished(self, kind: str, settings: dict[str, Any], setup: Setup) -> Run | None:
        """The last run of the same identity, if it was broken off."""
        identity = _digest(kind, settings, setup.comparable())
        runs = self._runs("WHERE identity = ? ORDER BY started_at DESC LIMIT 1", identity)
        return runs[0] if runs and runs[0].finished_at is None else None

    def keep(self, run: Run, item: str, answer: dict[str, Any]) -> None:
        """One answer; on disk when this returns. The same item again replaces it."""
        with self._db.transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO answers (run, item, measured_at, answer)"
                " VALUES (?, ?, ?, ?)",
                (run.id, item, time.time(), json.dumps(answer)),
            )

    def answers(self, run: Run) -> dict[str, dict[str, Any]]:
        """The answers of a run by item, in the order they were given."""
        with self._db.told(), self._db.lock:
            rows = self._db.execute(
                "SELECT item, answer FROM answers WHERE run = ? ORDER BY id", (run.id,)
            ).fetchall()
        return {item: json.loads(answer) for item, answer in rows}

    def finish(self, run: Run, result: dict[str, Any]) -> None:
        with self._db.transaction():
            self._db.execute(
                "UPDATE runs SET finished_at = ?, result = ? WHERE id = ?",
                (time.time(), json.dumps(result), run.id),
            )

    def get(self, number: int) -> Run | None:
        return next(iter(self._runs("WHERE id = ?", number)), None)

    def runs(self, kind: str | None = None) -> list[Run]:
        """All runs, or those of one kind, oldest first."""
        if kind is None:
            return self._runs("ORDER BY started_at")
        return self._runs("WHERE kind = ? ORDER BY started_at", kind)

    def _runs(self, rest: str, *values: Any) -> list[Run]:
        columns = "id, kind, identity, config_hash, settings, setup, started_at, finished_at"
        with self._db.told(), self._db.lock:
            rows: Sequence[tuple[Any, ...]] = self._db.execute(
                f"SELECT {columns}, result FROM runs {rest}",  # noqa: S608 - our own words only
                values,
            ).fetchall()
        return [
            Run(
                id=row[0],
                kind=row[1],
                identity=row[2],
                config_hash=row[3],
                settings=json.loads(row[4]),
                setup=json.loads(row[5]),
                started_at=row[6],
                finished_at=row[7],
                result=None if row[8] is None else json.loads(row[8]),
            )
            for row in rows
        ]


def config_hash(setup: Setup) -> str:
    """What decides the engine's speed beside the machine, as 12 hex digits."""
    return _digest("config", {}, setup.config())[:12]


def _digest(kind: str, settings: dict[str, Any], setup: dict[str, Any]) -> str:
    text = json.dumps([kind, settings, setup], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
