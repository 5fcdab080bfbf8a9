from pathlib import Path

import pytest
from filelock import FileLock

from engine_bridge import files


@pytest.mark.parametrize("text", ["", "{garbled", "[1, 2]", "\xff", '{"a":' * 100_000])
def test_what_is_no_json_object_reads_as_an_empty_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "book.json"
    assert files.read_object(path) == {}
    path.write_bytes(text.encode("latin-1"))
    assert files.read_object(path) == {}
    path.write_text('{"a": 1}')
    assert files.read_object(path) == {"a": 1}


def test_who_waits_for_a_lock_is_asked_and_gets_it_when_it_is_free(tmp_path: Path) -> None:
    path, asked = tmp_path / ".lock", []
    other = FileLock(path)
    other.acquire()

    def waiting() -> None:
        asked.append(True)
        if len(asked) == 2:
            other.release()

    with files.locked(path, waiting):
        assert len(asked) == 2


def test_who_gives_up_waiting_leaves_the_lock_to_its_holder(tmp_path: Path) -> None:
    def waiting() -> None:
        raise InterruptedError

    with FileLock(tmp_path / ".lock") as other:
        with pytest.raises(InterruptedError), files.locked(tmp_path / ".lock", waiting):
            pass
        assert other.is_locked
