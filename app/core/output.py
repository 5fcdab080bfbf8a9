"""Files that the user asked for, where the user asked for them."""

from pathlib import Path

from app.core.i18n import _
from engine_bridge import files
from engine_bridge.errors import BridgeError


def write(path: Path, text: str) -> None:
    """Write a file whole. Raises BridgeError when it cannot be written."""
    try:
        files.replace(path, text)
    except OSError as error:
        raise BridgeError(
            _("{path} cannot be written ({why}).").format(path=path, why=error.strerror or error),
            _("Check the folder and its permissions."),
        ) from error
