"""The process in which documents are parsed: `python -m app.core.documents.worker`.

A request is one line of JSON on stdin, {"path", "title"}. Answers are frames on stdout: a
length in four bytes, then JSON: {"progress": …} as often as there is some, at last {"error": …},
or {"document": …} followed by one more frame with the text.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import resource
import struct
import sys
import threading
import time
from pathlib import Path
from typing import BinaryIO

from app.core.documents.limits import CPU_S, MEMORY_BYTES
from app.core.documents.progress import Progress

REPORT_EVERY_S = 0.1


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what libraries print is no answer
    if not os.environ.get("LING_CHAT_DEBUG"):
        os.dup2(nowhere, 2)
    _limit()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        _answer(Path(request["path"]), request["title"], answers)


def _limit() -> None:
    for kind, amount in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(OSError, ValueError):  # macOS knows no limit of address space
            resource.setrlimit(kind, (amount, amount + (5 if kind == resource.RLIMIT_CPU else 0)))


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _answer(path: Path, title: str, answers: BinaryIO) -> None:
    from app.core.documents.formats.kinds import broken, extract_file

    reported, doing = 0.0, ""

    def report(progress: Progress) -> None:
        nonlocal reported, doing
        now = time.monotonic()
        news = progress.doing != doing or progress.done == progress.of
        if news or now - reported > REPORT_EVERY_S:
            reported, doing = now, progress.doing
            _send(answers, {"progress": dataclasses.asdict(progress)})

    try:
        found = extract_file(path, title, report)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        text = found.text
        told = {
            "encoding": found.encoding,
            "sha256": digest,
            "kind": found.kind,
            "pages": [min(start, len(text)) for start in found.pages],  # the last may be empty
            "note": " ".join(found.notes),
        }
    except Exception as error:
        if os.environ.get("LING_CHAT_DEBUG"):
            import traceback

            traceback.print_exc()
        reason = broken(title, error)
        _send(answers, {"error": [reason.exit_code, reason.reason, reason.cure]})
        return
    _send(answers, {"document": told})
    _write(answers, text.encode())


def _send(answers: BinaryIO, message: dict[str, object]) -> None:
    _write(answers, json.dumps(message).encode())


def _write(answers: BinaryIO, data: bytes) -> None:
    answers.write(struct.pack(">I", len(data)) + data)
    answers.flush()


if __name__ == "__main__":
    main()
