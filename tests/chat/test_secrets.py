"""Keys and tokens, with every kind of keyring that breaks."""

import json
import stat
import time
from collections.abc import Iterator

import keyring
import keyring.backend
import keyring.errors
import pytest

from engine_bridge import paths, secrets

NAME = secrets.server_key("http://spark:30000/v1")


class Working(keyring.backend.KeyringBackend):
    priority = 1
    name = "a working keyring"

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service, username):
        return self.kept.get((service, username))

    def set_password(self, service, username, password):
        self.kept[service, username] = password

    def delete_password(self, service, username):
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("not found")


class Crashing(Working):
    name = "crashing"

    def get_password(self, service, username):
        raise RuntimeError("no D-Bus session\nmore")


class Hanging(Working):
    name = "hanging"

    def get_password(self, service, username):
        time.sleep(30)


class Locked(Working):
    """Answers the probe and reads, but refuses to store."""

    name = "locked"

    def set_password(self, service, username, password):
        raise keyring.errors.KeyringLocked("locked")


@pytest.fixture(autouse=True)
def own_home(home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in ("LING_CHAT_API_KEY", "HF_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(secrets, "KEYRING_TIMEOUT_S", 0.5)
    before = keyring.get_keyring()
    secrets._probe.cache_clear()
    yield
    keyring.set_keyring(before)
    secrets._probe.cache_clear()


def the_file():
    return paths.config_dir() / "secrets.json"


def test_working_keyring_keeps_gives_and_forgets():
    keyring.set_keyring(Working())
    assert secrets.get(NAME) == ""
    assert secrets.store(NAME, " sk-1\n") == "the keyring (a working keyring)"
    assert secrets.get(NAME) == "sk-1"
    assert not the_file().exists()
    secrets.forget(NAME)
    secrets.forget(NAME)
    assert secrets.get(NAME) == ""


@pytest.mark.parametrize(
    ("backend", "why"),
    [(Crashing, "no D-Bus session"), (Hanging, "does not answer"), (None, "no keyring here")],
)
def test_broken_keyring_falls_back_to_a_private_file_and_says_so(backend, why):
    from keyring.backends.fail import Keyring as NoKeyring

    keyring.set_keyring(backend() if backend else NoKeyring())
    secrets.store(NAME, "sk-2")
    assert secrets.get(NAME) == "sk-2"
    assert secrets.where().startswith(f"the file {the_file()}")
    assert why in secrets.where()
    assert "\n" not in secrets.where()
    assert stat.S_IMODE(the_file().stat().st_mode) == 0o600
    secrets.forget(NAME)
    assert secrets.get(NAME) == ""


def test_missing_keyring_package_falls_back(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "keyring", None)
    secrets.store(NAME, "sk-3")
    assert secrets.get(NAME) == "sk-3"


def test_keyring_that_refuses_to_store_falls_back():
    keyring.set_keyring(Locked())
    assert secrets.store(NAME, "sk-4") == str(the_file())
    assert secrets.get(NAME) == "sk-4"


def test_environment_wins_and_is_not_stored(monkeypatch):
    keyring.set_keyring(Working())
    secrets.store(NAME, "stored")
    monkeypatch.setenv("LING_CHAT_API_KEY", " from-env\n")
    monkeypatch.setenv("HF_TOKEN", "hf-env")
    assert secrets.get(NAME) == "from-env"
    assert secrets.get(secrets.HUB_TOKEN) == "hf-env"
    monkeypatch.delenv("LING_CHAT_API_KEY")
    assert secrets.get(NAME) == "stored"


def test_environment_is_read_without_touching_the_keyring(monkeypatch):
    keyring.set_keyring(Hanging())
    monkeypatch.setenv("LING_CHAT_API_KEY", "from-env")
    began = time.monotonic()
    assert secrets.get(NAME) == "from-env"
    assert time.monotonic() - began < secrets.KEYRING_TIMEOUT_S


@pytest.mark.parametrize("damage", ["", "[]", '{"a": 1', "\x00\x01"])
def test_damaged_file_loses_nothing_but_itself(damage):
    from keyring.backends.fail import Keyring as NoKeyring

    keyring.set_keyring(NoKeyring())
    the_file().write_text(damage)
    assert secrets.get(NAME) == ""
    secrets.store(NAME, "sk-5")
    assert json.loads(the_file().read_text()) == {NAME: "sk-5"}


def test_one_server_has_one_key_however_its_url_ends():
    assert secrets.server_key("http://h:1") == secrets.server_key("http://h:1/v1/")
    assert secrets.server_key("http://h:1") != secrets.server_key("http://h:2")
