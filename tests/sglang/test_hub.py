"""Models from the hub: the real client against a local server that speaks the hub's routes."""

import json
import re
import threading
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub.constants
import pytest

from engine_bridge import paths
from engine_bridge.backends.sglang import hub
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

COMMIT = "c" * 40
NAME = "someone/small-model"
WEIGHTS = bytes(range(256)) * 4096


class Hub(ThreadingHTTPServer):
    """One repository. `wrong` names files whose bytes are not what the listing promises."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {
            "config.json": b'{"architectures": ["X"]}',
            "model.safetensors": WEIGHTS,
            "picture.png": b"not needed",
        }
        self.wrong: set[str] = set()
        self.asked: list[str] = []
        self.exists = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def listing(self) -> dict:
        siblings = []
        for name, data in self.files.items():
            entry = {"rfilename": name, "size": len(data), "blobId": git_sum(data)}
            if name.endswith(".safetensors"):
                sum_ = sha256(data).hexdigest()
                entry["lfs"] = {"sha256": sum_, "size": len(data), "pointerSize": 134}
            siblings.append(entry)
        return {"id": NAME, "modelId": NAME, "sha": COMMIT, "siblings": siblings, "tags": []}

    def tree(self) -> list[dict]:
        """The same, as later releases of the client ask for it."""
        return [
            {
                "type": "file",
                "path": each["rfilename"],
                "size": each["size"],
                "oid": each["blobId"],
                **({"lfs": {**each["lfs"], "oid": each["lfs"]["sha256"]}} if "lfs" in each else {}),
            }
            for each in self.listing()["siblings"]
        ]


def git_sum(data: bytes) -> str:
    return sha1(b"blob %d\0" % len(data) + data).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *args: object) -> None:
        pass

    def _answer(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        path = self.path.split("?")[0]
        if "/tree/" in path and self.server.exists:
            return self._send(json.dumps(self.server.tree()).encode())
        if path.startswith("/api/models/") and self.server.exists:
            return self._send(json.dumps(self.server.listing()).encode())
        found = re.fullmatch(rf"/{NAME}/resolve/{COMMIT}/(.+)", path)
        if not found or found[1] not in self.server.files or not self.server.exists:
            headers = {"X-Error-Code": "RepoNotFound"} if not self.server.exists else {}
            return self._send(b"{}", 404, headers)
        data = self.server.files[found[1]]
        tag = sha256(data).hexdigest() if found[1].endswith(".safetensors") else git_sum(data)
        if found[1] in self.server.wrong:
            data = bytes(len(data))
        return self._send(data, 200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT})

    def _send(self, data: bytes, status: int = 200, headers: dict | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)


@pytest.fixture
def server(home, monkeypatch):
    with Hub() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")
        monkeypatch.setenv("HF_HOME", str(home / "hf"))
        yield server
        server.shutdown()


def said(phase):
    pass


def test_a_model_is_downloaded_verified_and_then_needs_no_network(server):
    phases = []
    folder = hub.ensure(NAME, phases.append)
    assert folder == paths.models_dir() / "hub" / "someone--small-model"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert not (folder / "picture.png").exists()
    titles = [phase.title for phase in phases]
    assert titles[0] == f"asking the hub for {NAME}"
    assert any(title.startswith(f"downloading {NAME}") for title in titles)
    assert any(title.startswith("checking model.safetensors") for title in titles)
    server.asked.clear()
    assert hub.ensure(NAME, said) == folder
    assert server.asked == []


def test_a_file_that_arrives_as_another_is_deleted_and_only_it_comes_again(server):
    server.wrong = {"model.safetensors"}
    with pytest.raises(BridgeError, match=r"model\.safetensors arrived damaged"):
        hub.ensure(NAME, said)
    folder = hub.folder_of(NAME)
    assert not (folder / "model.safetensors").exists()
    server.wrong, server.asked = set(), []
    assert (hub.ensure(NAME, said) / "model.safetensors").read_bytes() == WEIGHTS
    assert not any(each.startswith("GET") and "config.json" in each for each in server.asked)


def test_a_file_lost_later_is_noticed_and_comes_again(server):
    folder = hub.ensure(NAME, said)
    (folder / "config.json").unlink()
    assert (hub.ensure(NAME, said) / "config.json").is_file()


def test_a_disk_that_is_too_small_is_said_before_anything_comes(server, monkeypatch):
    monkeypatch.setattr(hub, "SPARE_BYTES", 1 << 60)
    with pytest.raises(BridgeError, match="of disk") as caught:
        hub.ensure(NAME, said)
    assert "LING_CHAT_MODELS" in caught.value.cure
    assert not any("resolve" in each for each in server.asked)


def test_a_model_the_hub_lacks_and_a_hub_that_is_away_are_sentences(server, monkeypatch):
    server.exists = False
    with pytest.raises(UnavailableError, match="has no model someone/small-model"):
        hub.ensure(NAME, said)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UnavailableError, match="cannot be reached"):
        hub.ensure(NAME, said)


def test_a_start_that_is_called_off_ends_the_download(server):
    class CalledOffError(Exception):
        pass

    def report(phase):
        if phase.title.startswith("downloading"):
            raise CalledOffError

    with pytest.raises(CalledOffError):
        hub.ensure(NAME, report)
    assert (hub.ensure(NAME, said) / "model.safetensors").read_bytes() == WEIGHTS


def test_names_are_folders_or_of_the_hub(home, tmp_path):
    assert hub.folder_of(str(tmp_path)) == tmp_path
    default = paths.models_dir() / "hub" / "inclusionAI--Ling-3.0-flash-fp4"
    assert hub.folder_of("") == hub.folder_of("ling-3.0-flash-fp4") == default
    assert hub.folder_of(hub.DEFAULT) == default
    assert hub.folder_of("qwen") is None
    with pytest.raises(UsageError, match="no folder and no name"):
        hub.ensure("qwen", said)
    assert hub.ensure(str(tmp_path), said) == tmp_path
