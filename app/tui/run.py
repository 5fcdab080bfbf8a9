"""Starts the app from the command line."""

from collections.abc import Sequence

from app.core.settings import Settings
from engine_bridge.contract import EngineSpec
from engine_bridge.engine import Engine


def run_app(spec: EngineSpec, settings: Settings, files: Sequence[str]) -> None:
    """Run the app until the user leaves. Raises UsageError for a file that cannot be read."""
    from app.tui.app import LingChat, read_documents

    LingChat(handle(spec), spec, documents=read_documents(files), settings=settings).run()


def handle(spec: EngineSpec) -> Engine:
    """The handle that `open_engine` gives, not connected yet: nothing delays the first frame."""
    if spec.backend == "attach":
        from engine_bridge.backends.attach import AttachedEngine

        return AttachedEngine(spec)
    from engine_bridge.host.client import HostedEngine

    return HostedEngine(lease=True)
