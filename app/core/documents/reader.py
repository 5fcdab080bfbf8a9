"""The parsing process seen from outside: started when needed, ended when it misbehaves."""

import contextlib
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from app.core.documents.document import Document
from app.core.documents.limits import CPU_S, MAX_BYTES, STALL_S
from app.core.documents.progress import Progress, Report, unheard
from engine_bridge.errors import BridgeError, UsageError


class StoppedError(Exception):
    """Reading was given up by whom it was for."""


class Reader:
    """Parses files one after another in one worker process, for as long as it lives.

    Not for several threads at once, but `stop` may come from any.
    """

    def __init__(self, stall_s: float = STALL_S) -> None:
        self._stall_s = stall_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    @property
    def pid(self) -> int | None:
        """The worker's process id; None while there is none."""
        return self._process.pid if self._process else None

    def stop(self) -> None:
        """End the work at once; `read` then raises StoppedError."""
        self._stopped.set()
        self._kill()

    def check(self) -> None:
        """Raise StoppedError after `stop`."""
        if self._stopped.is_set():
            raise StoppedError

    def read(self, path: Path, title: str, report: Report = unheard) -> Document:
        """Parse a file; `report` is called in this thread.

        Raises UsageError or BridgeError with one sentence and a cure whatever the file does.
        """
        self.check()
        try:
            process = self._running()
            assert process.stdin is not None
            request = json.dumps({"path": os.path.abspath(path), "title": title})
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
            while True:
                message = json.loads(self._frame())
                if "progress" in message:
                    report(Progress(**message["progress"]))
                    self.check()
                elif "error" in message:
                    code, reason, cure = message["error"]
                    kind = UsageError if code == UsageError.exit_code else BridgeError
                    raise kind(reason, cure)
                else:
                    return _document(title, message["document"], self._frame().decode())
        except (_EndedError, OSError) as error:
            hung = isinstance(error, _HungError)
            code = self._end(patience_s=0.0 if hung else 1.0)
            self.check()
            raise _reason(title, hung, code, self._stall_s) from None
        except BridgeError:
            raise
        except BaseException:
            self._end()  # what it is still going to say belongs to nobody
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = subprocess.Popen(
                # -P: a folder named app where the user stands is not ours
                [sys.executable, "-P", "-m", "app.core.documents.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # so that it ends with what it starts
                env=os.environ | {"PYTHONPATH": os.pathsep.join(_search_path())},
            )
            if self._stopped.is_set():
                self._kill()
        return self._process

    def _frame(self) -> bytes:
        (length,) = struct.unpack(">I", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, length: int) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        data = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(source, selectors.EVENT_READ)
            while len(data) < length:
                if not selector.select(self._stall_s):
                    raise _HungError
                piece = os.read(source, min(length - len(data), 1 << 20))
                if not piece:
                    raise _EndedError
                data += piece
        return bytes(data)

    def _kill(self) -> None:
        if process := self._process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def _end(self, patience_s: float = 0.0) -> int | None:
        """End the process and return how it ended by itself; None if it had not."""
        process, self._process = self._process, None
        if process is None:
            return None
        code = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(patience_s)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return code


def _search_path() -> list[str]:
    """Where this package is, which need not be installed, before what the user has set."""
    own = str(Path(__file__).parents[3])
    return [own, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]


class _EndedError(Exception):
    """The worker's output ended."""


class _HungError(_EndedError):
    """The worker said nothing for too long."""


def _document(title: str, told: dict[str, Any], text: str) -> Document:
    if len(text) > MAX_BYTES:
        raise UsageError(f"{title} holds more than 64 MB of text.", "Give the part that matters.")
    told["pages"] = tuple(told["pages"])
    return Document(title=title, text=text, characters=len(text), **told)


def _reason(title: str, hung: bool, code: int | None, stall_s: float) -> BridgeError:
    if hung or code == -signal.SIGXCPU:
        limit = f"{stall_s:g} s without an answer" if hung else f"{CPU_S // 60} minutes"
        return BridgeError(
            f"Reading {title} was given up after {limit}.",
            "Attach the part that matters, or save it as plain text.",
        )
    return BridgeError(
        f"{title} made its reader crash: it is damaged, or needs more than 2 GB.",
        "Open and save it again with the program that wrote it, or save it as plain text.",
    )
