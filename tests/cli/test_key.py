"""`ling-chat key`: a server's key is kept where only the user can read it, and never shown."""

import stat
import subprocess
import sys

from engine_bridge import secrets

URL = "http://spark:30000"


def key(*args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app", "key", *args]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def test_a_piped_key_is_kept_found_and_forgotten(home):
    result = key("spark:30000/v1/", given="s3cret\n")
    assert result.returncode == 0
    assert "s3cret" not in result.stdout + result.stderr
    assert secrets.get(secrets.server_key(URL)) == "s3cret"
    file = home / "config" / "ling-chat" / "secrets.json"
    if file.exists():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert key(URL, "--forget").returncode == 0
    assert secrets.get(secrets.server_key(URL)) == ""


def test_an_empty_key_and_a_bad_url_are_wrong_usage(home):
    assert key(URL, given="\n").returncode == 2
    assert key("ht!tp://", given="x\n").returncode == 2
