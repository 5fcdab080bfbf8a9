"""Starts the app from the command line."""

import contextlib
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from typing import TYPE_CHECKING

from app.core import terminal
from app.core.settings.file import Settings
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import Engine
from engine_bridge.paths import expanded

if TYPE_CHECKING:
    from app.core.documents import Document

HEAD_BYTES = 4096
"""What of a file tells its format."""


def run_app(spec: EngineSpec, settings: Settings, files: Sequence[str]) -> int:
    """Run the app until the user leaves; returns the exit status.

    Raises UsageError for a file that cannot be read.
    """
    suit_terminal(settings)
    from app.tui.app import LingChat
    from app.tui.driver import Driver
    from app.tui.thin.driver import ThinDriver

    documents, sources = read_at_once(files)
    # Textual draws on standard error. A sign that its encoding lacks must not end the app.
    if isinstance(sys.__stderr__, TextIOWrapper):
        sys.__stderr__.reconfigure(errors="replace")
    app = LingChat(handle(spec), spec, documents=documents, settings=settings)
    app.sources = tuple(sources)
    if issubclass(Driver, app.driver_class):  # else TEXTUAL_DRIVER names another
        app.driver_class = ThinDriver if _is_thin(settings) else Driver
    app.run(mouse=terminal.takes_mouse())
    return app.return_code or 0


def read_at_once(files: Sequence[str]) -> tuple[list["Document"], list[str]]:
    """The documents that need only be decoded, and the names of those that take longer: they are
    read when the app runs. Raises UsageError for one that cannot be read."""
    if not files:
        return [], []
    from app.core.documents import is_address, read_document
    from app.core.documents.names import needs_worker

    documents: list[Document] = []
    later: list[str] = []
    for name in files:
        path = expanded(name)
        is_long = is_address(name) or path.is_dir()
        if not is_long and path.is_file():
            with contextlib.suppress(OSError), path.open("rb") as file:
                is_long = needs_worker(file.read(HEAD_BYTES), name)
        if is_long:
            later.append(name)
        else:
            documents.append(read_document(path))
    return documents, later


def _is_thin(settings: Settings) -> bool:
    wanted = settings.appearance.thin_line
    return wanted == "on" or (wanted == "auto" and terminal.is_remote())


def suit_terminal(settings: Settings) -> None:
    """Tell Textual, before it is imported, how often it may draw and whether in colours."""
    os.environ.setdefault(
        "TEXTUAL_FPS", str(terminal.frames_per_second(settings.appearance.frames_per_second))
    )
    if not terminal.has_colours():
        os.environ["NO_COLOR"] = "1"


def handle(spec: EngineSpec) -> Engine:
    """The handle that `open_engine` gives, not connected yet: nothing delays the first frame."""
    from engine_bridge.engine import AnyEngine

    if spec.backend == "attach":
        from engine_bridge.backends.attach import AttachedEngine

        return AnyEngine(AttachedEngine(spec), attached=True)
    from engine_bridge.host.client import HostedEngine

    return AnyEngine(HostedEngine(lease=True), attached=False)
