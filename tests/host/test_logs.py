"""The engine's log: lines however they end, no secrets, bounded in size."""

from engine_bridge import paths
from engine_bridge.host import client, logs
from engine_bridge.host.logs import EngineLog


def test_progress_bars_are_split_and_pieces_joined(tmp_path):
    log = EngineLog(tmp_path / "engine.log")
    assert log.feed(b"shards: 10%\rshards: 20%\rdo") == ["shards: 10%", "shards: 20%"]
    assert log.feed("ne ✓\n\n".encode()) == ["done ✓"]
    log.close()
    assert log.path.read_text().splitlines() == ["shards: 10%", "shards: 20%", "done ✓"]


def test_a_character_cut_between_reads_stays_whole(tmp_path):
    log = EngineLog(tmp_path / "engine.log")
    data = "模型 loaded\n".encode()
    assert [line for byte in data for line in log.feed(bytes([byte]))] == ["模型 loaded"]


def test_the_key_is_never_written_even_when_the_engine_prints_it(tmp_path):
    log = EngineLog(tmp_path / "engine.log")
    log.hide("s3cret")
    assert log.feed(b"ServerArgs(api_key='s3cret')\n") == ["ServerArgs(api_key='•••')"]
    log.close()
    assert "s3cret" not in log.path.read_text()


def test_the_file_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "MAX_BYTES", 2_000)
    log = EngineLog(tmp_path / "engine.log")
    for number in range(1_000):
        log.feed(f"line {number}\n".encode())
    log.close()
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == logs.KEPT_FILES + 1
    assert sum(path.stat().st_size for path in kept) < 2_000 * (logs.KEPT_FILES + 2)
    assert log.tail[-1] == "line 999"


def test_a_hosts_own_log_is_set_aside_when_it_has_grown(home, monkeypatch):
    monkeypatch.setattr(client, "HOST_LOG_BYTES", 100)
    log = paths.log_dir() / "host.log"
    log.write_bytes(b"old " * 100)
    client._spawn_host().wait(30)  # nobody takes a lease: it leaves by itself
    assert log.with_suffix(".log.1").read_bytes() == b"old " * 100
    assert log.stat().st_size < 400
