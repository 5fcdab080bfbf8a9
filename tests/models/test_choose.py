"""The model that suits a machine."""

from pathlib import Path

import pytest
from file_server import FileServer, entry_for, write_gguf, write_registry

from engine_bridge.errors import UnavailableError
from engine_bridge.models import choose
from engine_bridge.models.ensure import ensure
from engine_bridge.models.registry import find

GB = 10**9


@pytest.mark.parametrize(
    ("free", "name"),
    [(GB, "smollm2-135m"), (int(1.49 * GB), "smollm2-135m"), (int(1.5 * GB), "qwen2.5-coder-0.5b")],
)
def test_a_small_machine_gets_the_small_model(home: Path, free: int, name: str) -> None:
    assert choose.default_model(free).name == name


def test_the_fit_is_a_sentence(home: Path) -> None:
    entry = find("ling-3.0-tiny")
    assert choose.fits(entry, 8 * GB) == (
        True,
        "Ling-3.0-tiny needs about 6 GB of memory; 8 GB are free.",
    )
    fit = choose.fits(entry, 4 * GB)
    assert not fit.fits
    assert fit.sentence == "Ling-3.0-tiny needs about 6 GB of memory, and only 4 GB are free."


class TestEnsure:
    def test_what_does_not_fit_is_not_downloaded(
        self, home: Path, server: FileServer, body: bytes
    ) -> None:
        with pytest.raises(UnavailableError, match="only 2 GB are free") as caught:
            ensure("ling-3.0-tiny", lambda phase: None, free_bytes=2 * GB)
        assert "--model qwen2.5-coder-0.5b" in caught.value.cure
        assert server.requests == []

    def test_the_users_word_counts_more(
        self, home: Path, server: FileServer, body: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        server.hub(body)
        write_registry(home, entry_for(body, memory_bytes=5 * GB))
        monkeypatch.setenv("LING_CHAT_SKIP_MEMORY_CHECK", "1")
        assert ensure("tiny", lambda phase: None, free_bytes=GB).size == len(body)

    def test_no_name_takes_what_suits(self, home: Path, server: FileServer, body: bytes) -> None:
        server.hub(body)
        write_registry(home, entry_for(body, name="smollm2-135m", small=True))
        model = ensure("", lambda phase: None, free_bytes=GB)
        assert model.name == "smollm2-135m"
        assert model.path.read_bytes() == body

    def test_a_local_file_needs_no_network(self, home: Path, server: FileServer) -> None:
        write_gguf(home / "m.gguf")
        assert ensure(str(home / "m.gguf"), lambda phase: None).name == "m"
        assert server.requests == []

    def test_a_local_file_must_fit_too(self, home: Path) -> None:
        write_gguf(home / "m.gguf")
        with pytest.raises(UnavailableError, match="m needs about 300 MB of memory"):
            ensure(str(home / "m.gguf"), lambda phase: None, free_bytes=1000)
