"""`ling-chat models` as a user runs it: in a process of its own, with and without a terminal."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest
from file_server import FILE, HUB, HUB_PATH, MIRROR, FileServer, entry_for, serve_parts
from file_server import write_registry as write

LING_CHAT = [sys.executable, "-c", "from app.cli.main import run; run()"]


def models(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*LING_CHAT, "models", *arguments],
        capture_output=True,
        text=True,
        input=stdin or "",
        check=False,
        timeout=60,
    )


def on_terminal(*arguments: str) -> pexpect.spawn:
    return pexpect.spawn(
        LING_CHAT[0],
        [*LING_CHAT[1:], "models", *arguments],
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=30,
    )


@pytest.fixture
def tiny(home: Path, server: FileServer, body: bytes) -> None:
    server.hub(body)
    write(home, entry_for(body))


def slowly(sent: int) -> None:
    time.sleep(0.05)


def test_the_list_fits_80_columns(home: Path) -> None:
    done = models("list")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "DOWNLOAD", "MEMORY", "CONTEXT", "LICENCE", "STATE"]
    assert all(len(line) <= 80 for line in lines)
    assert "recommended" in next(line for line in lines if line.startswith("ling-3.0-tiny"))
    assert not done.stderr


def test_the_list_for_programs_follows_what_is_here(tiny: None, home: Path) -> None:
    def row() -> dict[str, object]:
        return next(r for r in json.loads(models("list", "--json").stdout) if r["name"] == "tiny")

    assert (row()["installed"], row()["path"]) == (False, None)
    models("pull", "tiny")
    assert (row()["installed"], row()["path"]) == (True, str(home / "models" / FILE))


def test_pull_check_remove(tiny: None, home: Path) -> None:
    path = home / "models" / FILE
    pulled = models("pull", "tiny")
    assert pulled.returncode == 0
    assert pulled.stdout == f"Tiny is ready: {path}\n"
    assert "downloading Tiny" in pulled.stderr
    assert "\r" not in pulled.stderr
    assert models("pull", "tiny").stdout == f"Tiny is here already: {path}\n"
    checked = models("check")
    assert checked.returncode == 0
    assert checked.stdout.startswith("tiny  ok  sha256 ")
    removed = models("remove", "tiny", "--yes")
    assert removed.stdout == f"deleted {path}\n"
    assert not path.exists()
    assert models("check").stdout == "No model is installed.\n"


def test_a_damaged_file_fails_the_check(tiny: None, home: Path, body: bytes) -> None:
    models("pull", "tiny")
    (home / "models" / FILE).write_bytes(bytes(len(body)))
    checked = models("check", "tiny")
    assert checked.returncode == 1
    assert "is damaged" in checked.stderr
    assert "Traceback" not in checked.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["pull", "nonsense"], 2, "There is no model called “nonsense”"),
        (["pull", "smollm2"], 2, "Did you mean smollm2-135m?"),
        (["check", "no.gguf"], 2, "no.gguf does not exist"),
        (["check", "smollm2-135m"], 3, "is not on this machine"),
        (["remove", "smollm2-135m", "--yes"], 3, "is not on this machine"),
        (["pull", "smollm2-135m"], 3, "could not be downloaded: official hub answered HTTP 404"),
    ],
)
def test_what_fails_is_one_sentence_and_its_exit_status(
    server: FileServer, arguments: list[str], code: int, said: str
) -> None:
    done = models(*arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_nothing_is_removed_where_nobody_can_be_asked(tiny: None, home: Path) -> None:
    models("pull", "tiny")
    done = models("remove", "tiny", stdin="y\n")
    assert done.returncode == 2
    assert (home / "models" / FILE).exists()


def test_remove_asks_on_a_terminal(tiny: None, home: Path) -> None:
    models("pull", "tiny")
    child = on_terminal("remove", "tiny")
    child.expect("Delete Tiny .3 MB, 1 files.")
    child.sendline("n")
    child.expect("Nothing was deleted")
    child.expect(pexpect.EOF)
    assert (home / "models" / FILE).exists()


def test_on_a_terminal_one_line_is_redrawn(tiny: None, server: FileServer, body: bytes) -> None:
    server.hub(body, before_chunk=slowly)
    child = on_terminal("pull", "tiny")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    drawn = child.before.split("Tiny is ready:")[0]
    assert "\n" not in drawn
    assert drawn.count("\r") > 5
    assert all(len(line) < 80 for line in drawn.split("\r"))
    assert "left  downloading Tiny · " in drawn


def test_a_source_that_fails_is_named_while_the_next_one_serves(
    home: Path, server: FileServer, body: bytes
) -> None:
    serve_parts(server, body)
    write(home, entry_for(body, HUB, MIRROR))
    done = models("pull", "tiny")
    assert done.returncode == 0
    assert "official hub answered HTTP 404" in done.stderr


def test_ctrl_c_stops_with_130_and_the_next_pull_goes_on(
    tiny: None, home: Path, server: FileServer, body: bytes
) -> None:
    served = server.hub(body, before_chunk=slowly)
    child = on_terminal("pull", "tiny")
    child.expect(r"[3-6]\d%")
    child.sendintr()
    child.expect("goes on from there")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert not (home / "models" / FILE).exists()
    served.before_chunk = lambda sent: None
    assert models("pull", "tiny").returncode == 0
    assert (home / "models" / FILE).read_bytes() == body
    assert int(server.asked(HUB_PATH)[1]["range"].strip("bytes=-")) > len(body) // 4


def test_more_memory_than_is_free_is_a_note(home: Path, server: FileServer, body: bytes) -> None:
    server.hub(body)
    write(home, entry_for(body, memory_bytes=10**15))
    done = models("pull", "tiny")
    assert done.returncode == 0
    assert "Note: Tiny needs about 1000000 GB of memory" in done.stderr
