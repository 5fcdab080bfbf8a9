"""One thread that writes what changed, so that neither the screen nor the stream ever waits."""

import threading
import time
from collections import deque
from collections.abc import Callable

from app.core.database import Database
from engine_bridge.errors import BridgeError

FLUSH_S = 0.4
"""Between two writings at least; what a killed process may lose."""
RETRY_S = 2.0
"""After a writing that failed."""

Job = Callable[[Database], None]


class Writer:
    """Runs jobs in order, all that wait in one transaction. What cannot be written waits."""

    def __init__(self, db: Database, on_problem: Callable[[BridgeError | None], None]) -> None:
        self._db = db
        self._on_problem = on_problem
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._hurry = self._closing = False
        self._try = self._failed = 0
        """How many times writing was begun, and which of these failed last; 0 after a good one."""
        self.problem: BridgeError | None = None
        """Why the last writing failed; None where it did not."""
        self.written: dict[str, tuple[int, int]] = {}
        """Of each reply that grows, by turn id: characters of text and of thought in the file.
        Only jobs touch it; a writing that fails puts it back."""
        self._thread: threading.Thread | None = None

    def do(self, job: Job) -> None:
        """Write this soon. Returns at once; any thread may call."""
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="sessions", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Return when everything is written. Raises BridgeError when that fails."""
        with self._changed:
            self._hurry, before = True, self._try  # one that was begun before may well fail
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._failed > before or not (self._jobs and self._thread)
            )
            self._hurry = False
            if self._failed > before and self.problem:
                raise self.problem

    def close(self) -> None:
        """Write what waits, and end. Raises BridgeError when that fails."""
        try:
            self.flush()
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs or self._closing)
                if self._closing:
                    return
                jobs = list(self._jobs)
                self._try += 1
            began = time.monotonic()
            self._write(jobs)
            rest = RETRY_S if self.problem else FLUSH_S
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closing or self._hurry, rest - (time.monotonic() - began)
                )

    def _write(self, jobs: list[Job]) -> None:
        before, problem = dict(self.written), None
        try:
            with self._db.transaction():
                for job in jobs:
                    job(self._db)
        except BridgeError as error:
            problem = error
            self.written = before
        told = (self.problem and self.problem.reason) != (problem and problem.reason)
        if told:
            self._on_problem(problem)
        with self._changed:
            self.problem, self._failed = problem, self._try if problem else 0
            if problem is None:
                for _ in jobs:
                    self._jobs.popleft()
            self._changed.notify_all()
