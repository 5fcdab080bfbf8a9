"""Starts the app from the command line."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from app.core import terminal
from app.core.settings import Settings
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import Engine


def run_app(spec: EngineSpec, settings: Settings, files: Sequence[str]) -> int:
    """Run the app until the user leaves; returns the exit status.

    Raises UsageError for a file that cannot be read.
    """
    suit_terminal(settings)
    from app.tui.app import LingChat, read_documents
    from app.tui.driver import Driver

    documents = read_documents(files)
    # Textual draws on standard error. A sign that its encoding lacks must not end the app.
    if isinstance(sys.__stderr__, TextIOWrapper):
        sys.__stderr__.reconfigure(errors="replace")
    app = LingChat(handle(spec), spec, documents=documents, settings=settings)
    if issubclass(Driver, app.driver_class):  # else TEXTUAL_DRIVER names another
        app.driver_class = Driver
    app.run()
    return app.return_code or 0


def suit_terminal(settings: Settings) -> None:
    """Tell Textual, before it is imported, how often it may draw and whether in colours."""
    os.environ.setdefault(
        "TEXTUAL_FPS", str(terminal.frames_per_second(settings.appearance.frames_per_second))
    )
    if not terminal.has_colours():
        os.environ["NO_COLOR"] = "1"


def handle(spec: EngineSpec) -> Engine:
    """The handle that `open_engine` gives, not connected yet: nothing delays the first frame."""
    if spec.backend == "attach":
        from engine_bridge.backends.attach import AttachedEngine

        return AttachedEngine(spec)
    from engine_bridge.host.client import HostedEngine

    return HostedEngine(lease=True)
