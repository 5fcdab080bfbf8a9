"""A real SGLang on a machine without a GPU, with this checkout's plugin as an installed one.

The interpreter named by LING_CHAT_SGLANG_PYTHON has SGLang (`make_sglang_env.sh` builds one).
SGLang's CPU mode imports `sgl_kernel`, whose wheel has GPU binaries only, so its Python files are
used from a copy whose two loader functions do nothing. No kernel of it runs here.
"""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
STUBS = """

def _load_architecture_specific_ops():
    return None


def _preload_cuda_library():
    return None
"""


def interpreter() -> str | None:
    """The interpreter that has SGLang, or None where no one named it."""
    return os.environ.get("LING_CHAT_SGLANG_PYTHON")


def entry_point(folder: Path) -> None:
    """Write the metadata by which SGLang finds the plugin, `folder` and ROOT being on the path."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugins = project["entry-points"]["sglang.srt.plugins"]
    info = folder / f"ling_chat-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: ling-chat\nVersion: {project['version']}\n")
    (info / "entry_points.txt").write_text(
        "[sglang.srt.plugins]\n" + "".join(f"{k} = {v}\n" for k, v in plugins.items())
    )


def install(python: str, folder: Path) -> dict[str, str]:
    """Put the shim and the plugin's entry point into `folder`; returns the process environment."""
    site = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    shutil.copytree(
        Path(site) / "sgl_kernel",
        folder / "sgl_kernel",
        ignore=lambda _, names: [n for n in names if "." in n and not n.endswith(".py")],
    )
    with (folder / "sgl_kernel" / "load_utils.py").open("a") as file:
        file.write(STUBS)
    entry_point(folder)
    bare = {k: v for k, v in os.environ.items() if k not in ("LING_CHAT_ENGINE", "PYTHONHOME")}
    return bare | {
        "PYTHONPATH": f"{folder}:{ROOT}",
        "SGLANG_USE_CPU_ENGINE": "1",
        "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
