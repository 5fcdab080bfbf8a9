"""How long each step of a start took last time, to promise an ETA that this machine keeps."""

import contextlib
import json

from engine_bridge import files, paths

KEPT = 200


class Durations:
    """Seconds by key, in a small JSON file. An unreadable file is an empty one."""

    def __init__(self) -> None:
        self._path = paths.state_dir() / "durations.json"
        try:
            self._known: dict[str, float] = {
                key: float(value) for key, value in files.read_object(self._path).items()
            }
        except (ValueError, TypeError):
            self._known = {}

    def get(self, *key: str) -> float | None:
        return self._known.get("/".join(key))

    def learn(self, seconds: float, *key: str) -> None:
        """Remember; the oldest entries make room. On a full disk, only as long as this lives."""
        name = "/".join(key)
        self._known.pop(name, None)
        self._known[name] = round(seconds, 3)
        while len(self._known) > KEPT:
            self._known.pop(next(iter(self._known)))
        with contextlib.suppress(OSError):
            files.replace(self._path, json.dumps(self._known))
