"""What the engine's interpreter needs of us, as one small folder on its PYTHONPATH.

The engine may live in a virtual environment or a container where ling-chat is not installed.
The folder holds the wrapper, our SGLang plugin, and the metadata by which SGLang finds it, so
nothing has to be installed there. The same folder serves this environment too: one way for all.
"""

import hashlib
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine_bridge import paths
from engine_bridge.errors import BridgeError

DISTRIBUTION = "ling-chat"
"""The same name as the installed one: of two, Python takes the first on the path, ours."""
ENTRY_POINTS = """\
[sglang.srt.plugins]
ling_chat = engine_bridge.sglang_plugin:register
"""
WRAPPER = "ling_chat_serve.py"
_SOURCES = Path(__file__).parents[2]


def ensure() -> Path:
    """The bundle's folder, made if it is missing; named by its content.

    Raises BridgeError when it cannot be written.
    """
    files = contents()
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:12]
    root = paths.state_dir() / "engine-bundles"
    folder = root / digest
    if folder.is_dir():
        return folder
    try:
        root.mkdir(exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=root))
        _write(new, files)
        new.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another start was quicker
            raise BridgeError(
                f"The engine's folder {folder} cannot be made: {error.strerror or error}.",
                "Make room on the disk, or check the folder's permissions.",
            ) from error
    return folder


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def contents() -> dict[str, str]:
    """Path inside the bundle → text."""
    info = f"ling_chat-{_version()}.dist-info"
    files = {
        WRAPPER: (Path(__file__).parent / "serve.py").read_text(encoding="utf-8"),
        "engine_bridge/__init__.py": '"""The part of ling-chat that runs inside the engine."""\n',
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {_version()}\n"
        ),
        f"{info}/entry_points.txt": ENTRY_POINTS,
    }
    for path in sorted((_SOURCES / "sglang_plugin").rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = f"engine_bridge/{path.relative_to(_SOURCES).as_posix()}"
            files[name] = path.read_text(encoding="utf-8")
    return files


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0"
