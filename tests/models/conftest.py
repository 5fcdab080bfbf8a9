"""A file server named by the environment as the hub and the package index, and bytes to pull."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from file_server import FileServer

from engine_bridge.models import fetch


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A server that the environment names as both the hub and the package index."""
    server = FileServer()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple/")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(fetch, "BACKOFF_S", 0.01)
    yield server
    server.close()


@pytest.fixture
def body() -> bytes:
    """The bytes of a model: 3 MB that do not compress."""
    return os.urandom(3_000_000)


@pytest.fixture(autouse=True)
def _report_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine_bridge.models.progress.EVERY_S", 0.0)
