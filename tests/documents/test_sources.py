"""Folders, git repositories and addresses as documents."""

import http.server
import os
import subprocess
import threading
from typing import ClassVar

import pytest
import real_files as real

from app.core.documents import read_document
from app.core.documents.folder import preview_folder, read_folder
from app.core.documents.places import files, line_offset
from engine_bridge.errors import BridgeError, UsageError


@pytest.fixture
def project(tmp_path):
    """Sources, a page, a paper, a picture, what is ignored, and a link that leads away."""
    root = tmp_path / "project"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main.py").write_text("import os\nprint('hello')\n")
    (root / "src" / "deep" / "notes.md").write_text("# Notes\n")
    (root / "index.html").write_text("<html><body><p>page</p></body></html>")
    (root / "cache.log").write_text("log")
    (root / "build").mkdir()
    (root / "build" / "out.txt").write_text("built")
    (root / "keep.log").write_text("kept")
    (root / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n")
    (root / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    (root / "nothing.txt").write_bytes(b"")
    real.pdf(root / "paper.pdf", pages=1)
    (tmp_path / "secret.txt").write_text("elsewhere")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


def git(root, *arguments):
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@e", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
    )


WANTED = ["index.html", "keep.log", "paper.pdf", "src/deep/notes.md", "src/main.py"]


@pytest.mark.parametrize("repository", [False, True], ids=["folder", "repository"])
def test_preview_tells_what_goes_in_and_why_not(project, repository):
    if repository:
        git(project, "init", "-q")
    preview = preview_folder(project)
    names = [entry.path for entry in preview.files if entry.path != ".gitignore"]
    assert names == WANTED
    assert preview.repository is repository
    assert preview.size == sum((project / entry.path).stat().st_size for entry in preview.files)
    assert {entry.path: entry.why for entry in preview.left_out} == {
        "nothing.txt": "empty",
        "picture.png": "binary",
    }


def test_the_nearest_gitignore_has_the_last_word(project):
    (project / "src" / ".gitignore").write_text("*.md\n!special.log\n/only-here.txt\n")
    (project / "src" / "special.log").write_text("log")
    (project / "src" / "only-here.txt").write_text("text")
    (project / "src" / "deep" / "only-here.txt").write_text("text")
    walked = {entry.path for entry in preview_folder(project).files}
    git(project, "init", "-q")
    known = {entry.path for entry in preview_folder(project).files}
    assert walked == {path for path in known if not path.endswith(".gitignore")}
    assert "src/special.log" in walked
    assert "src/deep/only-here.txt" in walked
    assert "src/deep/notes.md" not in walked
    assert "src/only-here.txt" not in walked


def test_a_folder_is_one_document_with_a_page_a_file(project):
    document = read_document(project)
    assert document.kind == "folder"
    assert document.title == "project/"
    assert list(files(document)) == WANTED
    assert real.FACT in document.text
    assert "elsewhere" not in document.text
    assert document.note == "Left out: 1 empty, 1 binary."
    page = files(document)["src/main.py"]
    at = line_offset(document, 2, page)
    assert document.text[at:].startswith("print('hello')")
    assert line_offset(document, 3, page) is None
    assert "\npage\n" in document.text  # outside a repository HTML is a page


def test_in_a_repository_html_is_source(project):
    git(project, "init", "-q")
    assert "<p>page</p>" in read_document(project).text


def test_tracked_and_new_files_go_in_and_a_subfolder_stands_for_itself(project):
    git(project, "init", "-q")
    git(project, "add", "-f", "cache.log")
    git(project, "commit", "-qm", "x")
    (project / "src" / "new.py").write_text("new = True\n")
    assert "cache.log" in [entry.path for entry in preview_folder(project).files]
    assert [entry.path for entry in preview_folder(project / "src").files] == [
        "deep/notes.md",
        "main.py",
        "new.py",
    ]


def test_same_files_have_the_same_hash_wherever_they_are(project, tmp_path):
    first = read_document(project).sha256
    project.rename(tmp_path / "moved")
    assert read_document(tmp_path / "moved").sha256 == first
    (tmp_path / "moved" / "src" / "main.py").write_text("changed = True")
    assert read_document(tmp_path / "moved").sha256 != first


def test_a_file_that_turns_out_damaged_is_left_out_and_named(project):
    (project / "broken.pdf").write_bytes(b"%PDF-1.7 nothing more")
    assert "not readable: broken.pdf" in read_document(project).note


def test_names_that_are_no_text_do_not_get_into_the_prompt(project):
    (project / os.fsdecode(b"caf\xe9\x1b[31m\n.txt")).write_text("a menu")
    (project / os.fsdecode(b"br\xf6ken.pdf")).write_bytes(b"%PDF-1.7 nothing more")
    document = read_document(project)
    assert "=== caf? .txt ===\na menu\n" in document.text
    assert "not readable: br?ken.pdf" in document.note
    assert "\x1b" not in document.text
    (document.text + document.note + document.title).encode()


def test_a_user_that_nobody_knows_is_a_path_like_others():
    with pytest.raises(UsageError, match="There is no file ~nobody-of-this-name/x"):
        read_document("~nobody-of-this-name/x")


def test_an_empty_folder_and_one_too_big_are_told(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="There is nothing to read in"):
        read_document(tmp_path)
    monkeypatch.setattr("app.core.documents.folder.MAX_FILES", 3)
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("text")
    preview = preview_folder(tmp_path)
    assert len(preview.files) == 3
    assert preview.reasons == {"beyond 3 files": 2}
    assert read_folder(preview).note == "Left out: 2 beyond 3 files."
    monkeypatch.setattr("app.core.documents.folder.MAX_SEEN", 4)
    with pytest.raises(UsageError, match="holds more than 4 files"):
        preview_folder(tmp_path)


def test_a_folder_that_its_repository_ignores_may_be_named_all_the_same(project):
    git(project, "init", "-q")
    assert [entry.path for entry in preview_folder(project / "build").files] == ["out.txt"]


# Addresses


class Pages(http.server.BaseHTTPRequestHandler):
    files: ClassVar[dict[str, tuple[str, bytes]]] = {}

    def do_GET(self):
        if self.path.startswith("/loop"):
            self.send_response(302)
            self.send_header("Location", self.path + "x")
            self.end_headers()
            return
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "file:///etc/passwd")
            self.end_headers()
            return
        kind, data = self.files.get(self.path, ("", b""))
        self.send_response(200 if kind else 404)
        self.send_header("Content-Type", kind or "text/plain")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    Pages.files = {
        "/lease": ("text/html; charset=utf-8", real.HTML.encode()),
        "/lease.php?id=1": ("text/html", real.HTML.encode()),
        "/get": ("application/octet-stream", real.pdf(tmp_path / "x.pdf").read_bytes()),
        "/plain.txt": ("text/plain", real.CHINESE.encode("gb18030")),
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_the_server_says_and_the_bytes_decide_the_format(site):
    told = []
    page = read_document(f"{site}/lease", told.append)
    assert (page.kind, page.title) == ("html", "127.0.0.1/lease.html")
    assert real.FACT in page.text
    assert "Menu" not in page.text
    assert told[0].doing == "fetching"
    assert read_document(f"{site}/lease.php?id=1").kind == "html"
    assert len(read_document(f"{site}/get").pages) == 3
    assert read_document(f"{site}/plain.txt").text == real.CHINESE


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ("/none", "answers 404"),
        ("/loop", "redirects in a circle"),
        ("/away", "is no address of a page"),
    ],
)
def test_a_page_that_cannot_be_had_costs_one_sentence(site, path, match):
    with pytest.raises(BridgeError, match=match) as told:
        read_document(site + path)
    assert told.value.cure


def test_no_server_and_too_much(site, monkeypatch):
    with pytest.raises(BridgeError, match="cannot be had"):
        read_document("http://127.0.0.1:9/")
    with pytest.raises(UsageError, match="no address"):
        read_document("http://")
    monkeypatch.setattr("app.core.documents.web.MAX_BYTES", 100)
    with pytest.raises(UsageError, match="larger than"):
        read_document(f"{site}/lease")


def test_an_address_is_only_what_was_typed_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("http:")
    (tmp_path / "http:" / "x").write_text("a file with an odd name")
    assert read_document(tmp_path / "http:" / "x").text.startswith("a file")
