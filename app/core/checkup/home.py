"""What `doctor` looks at of the user's own: folders, settings, secrets, sessions, terminal."""

import contextlib
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from app.core import terminal
from app.core.checkup.findings import Finding, Health
from app.core.database import is_damage, told_of
from app.core.i18n import LANGUAGES, _, language, ngettext, shown
from engine_bridge import paths
from engine_bridge.errors import BridgeError

LOW_DISK_BYTES = 2_000_000_000
LOW_HOME_BYTES = 200_000_000
COUNT = "SELECT count(*) FROM session WHERE deleted IS NULL"
OTHERS = 0o077
"""The permissions of everybody but the owner."""


def disks() -> Iterator[Finding]:
    """Free space where models and where the user's own files are, each disk once."""
    from engine_bridge.models.progress import size_text

    places: dict[int, tuple[Path, int]] = {}
    own = []
    for find, least in (
        (paths.models_dir, LOW_DISK_BYTES),
        (paths.data_dir, LOW_HOME_BYTES),
        (paths.config_dir, LOW_HOME_BYTES),
        (paths.state_dir, LOW_HOME_BYTES),
    ):
        try:
            folder = find()
        except BridgeError as problem:
            yield Finding("disk", Health.BAD, shown(problem.reason), shown(problem.cure))
            continue
        with contextlib.suppress(OSError):  # not made yet, and cannot be: told below
            places.setdefault(folder.stat().st_dev, (folder, least))
        if find is not paths.models_dir:
            own.append(folder)
    for folder, least in places.values():
        free = shutil.disk_usage(folder).free
        text = _("{size} free in {folder}").format(size=size_text(free), folder=folder)
        if free >= least:
            yield Finding("disk", Health.GOOD, text)
        elif least == LOW_DISK_BYTES:
            cure = _("Free some, or move the models with LING_CHAT_MODELS.")
            yield Finding("disk", Health.WARNING, text, cure)
        else:
            yield Finding("disk", Health.WARNING, text, _("Free some: sessions are kept there."))
    for folder in own:
        if not os.access(folder, os.W_OK):
            yield Finding(
                "disk",
                Health.BAD,
                _("{folder} cannot be written").format(folder=folder),
                shown(paths.ELSEWHERE),
            )


def settings() -> Iterator[Finding]:
    """The settings' file, and the language that is in use."""
    from app.core.settings import file as settings_file

    settings_file.load()
    there = settings_file.path().exists()
    where = str(settings_file.path())
    text = where if there else _("{path} (not made yet)").format(path=where)
    yield Finding("settings", Health.GOOD, text)
    if names := settings_file.unknown():
        yield Finding(
            "settings",
            Health.WARNING,
            _("unknown, so without effect: {names}").format(names=", ".join(names)),
            _("Correct or remove them; F8 in the app lists what can be set."),
        )
    yield Finding("language", Health.GOOD, LANGUAGES[language()])


def secrets() -> Iterator[Finding]:
    """Where secrets are kept, and which there are; never what they are."""
    from app.core.settings import file as settings_file
    from engine_bridge import secrets as kept

    yield Finding(
        "keyring", Health.GOOD, _("secrets are kept in {where}").format(where=shown(kept.where()))
    )
    file = kept.file()
    if file.exists() and file.stat().st_mode & OTHERS:
        yield Finding(
            "keyring",
            Health.BAD,
            _("{file} can be read by others").format(file=file),
            _("Run: chmod 600 {file}").format(file=file),
        )
    wanted = {_("the model hub"): kept.HUB_TOKEN}
    with contextlib.suppress(Exception):  # broken settings have a finding of their own
        if url := settings_file.load().engine.url:
            from engine_bridge.chat.web import normal_url

            wanted[url] = kept.server_key(normal_url(url))
    for what, name in wanted.items():
        there = kept.source(name)
        text = _("a key for {what} is in {where}") if there else _("no key for {what}")
        yield Finding("keyring", Health.GOOD, text.format(what=what, where=there))


def sessions() -> Iterator[Finding]:
    """Whether the file of sessions is whole; nothing is mended here."""
    from engine_bridge.models.progress import size_text

    path = paths.data_dir() / "sessions.db"
    if not path.exists():
        yield Finding("sessions", Health.GOOD, _("none yet"))
        return
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            told = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            [count] = db.execute(COUNT).fetchone() if _is_made(db) else [0]
    except sqlite3.Error as error:
        problem = told_of(error, path)
        if not is_damage(error):
            yield Finding("sessions", Health.BAD, problem.reason, problem.cure)
            return
        told, count = str(error), 0
    if told == "ok":
        text = ngettext("{n} session in {path}, {size}", "{n} sessions in {path}, {size}", count)
        size = size_text(path.stat().st_size)
        yield Finding("sessions", Health.GOOD, text.format(n=count, path=path, size=size))
    else:
        yield Finding(
            "sessions",
            Health.BAD,
            _("{path} is damaged ({why})").format(path=path, why=told),
            _("Open the app: it keeps everything readable, and says what was lost."),
        )


def _is_made(db: sqlite3.Connection) -> bool:
    """False for a file whose making was cut short, on a full disk: the next start makes it."""
    return bool(db.execute("PRAGMA user_version").fetchone()[0])


def screen() -> Iterator[Finding]:
    """The terminal: what it is, what it can, and what stands between."""
    name = os.environ.get("TERM", "")
    columns, rows = shutil.get_terminal_size()
    between = terminal.inside() + (("mosh",) if terminal.is_mosh() else ())
    around = "".join(f"{each}, " for each in between)
    colours = os.environ.get("COLORTERM") or (
        _("no true colour") if terminal.has_colours() else _("no colours")
    )
    encoding = sys.stdout.encoding or ""
    text = f"{around}TERM={name or _('unset')}, {colours}, {columns}×{rows}, {encoding}"
    if not name or terminal.is_dumb():
        cure = _("It cannot place a cursor: ling-chat chats line by line here, as with --plain.")
        yield Finding("terminal", Health.WARNING, text, cure)
    elif "utf" not in encoding.lower():
        yield Finding("terminal", Health.WARNING, text, _("Set a UTF-8 locale, such as C.UTF-8."))
    else:
        yield Finding("terminal", Health.GOOD, text)
    limits = {
        "screen": _("GNU screen: the mouse stays off, as with it screen holds Esc back."),
        "mosh": _("mosh: copies up to 12 KB (from version 1.4 on); longer ones go to a file."),
    }
    for each in between:
        if each in limits:
            yield Finding("terminal", Health.GOOD, limits[each])
    yield from _clipboard()


def _clipboard() -> Iterator[Finding]:
    from app.core import clipboard

    ways = [argv[0]] if (argv := clipboard.tool()) else []
    if clipboard.osc_52("x"):
        ways.append("OSC 52")
    if ways:
        yield Finding("clipboard", Health.GOOD, " + ".join(ways))
    else:
        yield Finding(
            "clipboard",
            Health.WARNING,
            _("none: what is copied goes to a file"),
            _("Use a terminal with OSC 52, or install wl-copy, xclip or xsel."),
        )
