"""Sessions from a file: all of it or, where anything is wrong with it, nothing."""

import json
import zipfile
from pathlib import Path
from typing import Any

from app.core.i18n import _
from app.core.sessions import chatgpt, exchange
from app.core.sessions.store import Incoming
from engine_bridge.errors import BridgeError, UsageError, brief

MAX_BYTES = 2 * 1024**3
"""Of one JSON text; the largest exports known are a tenth of it."""


def read(path: Path) -> list[Incoming]:
    """The sessions of ling-chat's own JSON, or of a ChatGPT export (conversations.json, or the
    .zip with it). Raises UsageError or BridgeError, one sentence with its cure."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(
            _("{path} is no file.").format(path=path), _("Give the export itself, saved as a file.")
        )
    try:
        if zipfile.is_zipfile(path):
            return [each for text in _members(path) for each in _sessions(text, path)]
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(_("{path} is larger than 2 GB.").format(path=path))
        return _sessions(path.read_bytes(), path)
    except zipfile.BadZipFile as error:
        raise UsageError(
            _("{path} is a damaged ZIP archive.").format(path=path), _("Download it again.")
        ) from error
    except FileNotFoundError as error:
        raise UsageError(
            _("There is no file {path}.").format(path=path), _("Check the path.")
        ) from error
    except OSError as error:
        why = error.strerror or error
        raise BridgeError(
            _("{path} cannot be read ({why}).").format(path=path, why=why), _("Check the path.")
        ) from error


def _members(path: Path) -> list[bytes]:
    """The JSON texts of a ChatGPT archive: conversations.json, or conversations-000.json …"""
    with zipfile.ZipFile(path) as archive:
        names = [
            info
            for info in archive.infolist()
            if Path(info.filename).name.startswith("conversations")
            and info.filename.endswith(".json")
        ]
        if not names:
            raise UsageError(
                _("{path} has no conversations.json in it.").format(path=path),
                _("Give the ZIP file of a ChatGPT export, or a JSON file of ling-chat."),
            )
        if sum(info.file_size for info in names) > MAX_BYTES:
            raise UsageError(_("{path} is larger than 2 GB.").format(path=path))
        return [archive.read(info) for info in sorted(names, key=lambda info: info.filename)]


def _sessions(text: bytes, path: Path) -> list[Incoming]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            _("{path} is no JSON.").format(path=path),
            _("Give a JSON file of ling-chat, or a ChatGPT export."),
        ) from error
    if exchange.is_ours(found):
        return exchange.from_json(found)
    if found == []:
        return []
    if chatgpt.is_export(found):
        try:
            return chatgpt.from_export(found)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                _("The ChatGPT export {path} is damaged: {why}.").format(
                    path=path, why=brief(error)
                ),
                _("Nothing was imported; download it again."),
            ) from error
    raise UsageError(
        _("{path} holds no sessions that ling-chat knows.").format(path=path),
        _("Give a JSON file of ling-chat, or a ChatGPT export."),
    )
