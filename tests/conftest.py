"""Fixtures for all tests: a home of its own, and the real small model."""

import os
from pathlib import Path

import platformdirs
import pytest
from homes import live_in

pytest_plugins = ["engine_fixtures"]

# A worker of pytest-xdist gives these to its children, and they win over a pty's real size.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# Whatever terminal the tests are run in: what is drawn and copied follows it.
os.environ["TERM"] = "xterm-256color"
for name in ("COLORTERM", "NO_COLOR", "STY", "TMUX", "SSH_CONNECTION", "SSH_TTY"):
    os.environ.pop(name, None)

SMOL = "smollm2-135m"
os.environ["LING_CHAT_LANGUAGE"] = "en"  # whatever the language of who runs the tests


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder in which nothing of the user's is found or touched."""
    home = tmp_path / "home"
    home.mkdir()
    live_in(home, monkeypatch)
    return home


@pytest.fixture(scope="session")
def smol() -> Path:
    """The real SmolLM2-135M, pulled once with the product's own code and kept for later runs."""
    from engine_bridge.models.ensure import ensure

    cache = Path(platformdirs.user_cache_dir("ling-chat-tests"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LING_CHAT_MODELS", str(cache / "models"))
        patch.setenv("XDG_STATE_HOME", str(cache / "state"))
        patch.setenv("XDG_CONFIG_HOME", str(cache / "config"))
        return ensure(SMOL, lambda phase: None).path
