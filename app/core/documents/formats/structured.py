"""Notebooks and subtitles: text files whose raw form wastes tokens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.core.documents.decode import decode
from app.core.documents.formats.extracted import Extracted
from app.core.documents.progress import Report


def read_notebook(path: Path, title: str, report: Report) -> Extracted:
    """Cells in their order; what a cell printed follows it, pictures left out."""
    found = Extracted("notebook")
    text, found.encoding = decode(path.read_bytes(), title)
    book = json.loads(text)
    language = book.get("metadata", {}).get("kernelspec", {}).get("language", "python")
    pictures = 0
    for entry in book.get("cells", []):
        source = _joined(entry.get("source", ""))
        if entry.get("cell_type") != "code":
            found.add(source)
            continue
        found.add(f"```{language}\n{source}\n```")
        for output in entry.get("outputs", []):
            printed, more = _output(output)
            pictures += more
            found.add(f"```output\n{printed}\n```" if printed.strip() else "")
    if pictures:
        found.notes.append(f"{pictures} {'picture' if pictures == 1 else 'pictures'} left out.")
    return found


def _output(output: dict[str, Any]) -> tuple[str, int]:
    """What an output says as text, and whether it is a picture."""
    if output.get("output_type") == "error":
        return f"{output.get('ename')}: {output.get('evalue')}", 0
    data = output.get("data", {})
    text = _joined(output.get("text") or data.get("text/plain") or data.get("text/markdown") or "")
    return text, int(any(kind.startswith("image/") for kind in data))


def _joined(source: object) -> str:
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def read_subtitles(path: Path, title: str, report: Report) -> Extracted:
    """One line an event: when it starts, then what is said; styling is dropped."""
    import pysubs2

    found = Extracted("subtitles")
    text, found.encoding = decode(path.read_bytes(), title)
    found.add("\n".join(_spoken(pysubs2.SSAFile.from_string(text))))
    return found


def _spoken(events: Any) -> Iterator[str]:
    for event in events:
        words = " ".join(event.plaintext.split())
        if words and not event.is_comment:
            seconds = event.start // 1000
            yield f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02} {words}"
