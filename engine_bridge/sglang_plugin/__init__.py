"""What the engine process loads: an SGLang plugin for the optimisations SGLang lacks.

SGLang calls `register` in each of its processes (entry point group `sglang.srt.plugins`). It does
nothing unless the environment names what was asked for. Nothing here imports the rest of
`engine_bridge`, and importing this package needs neither torch nor SGLang.
"""

import os

__version__ = "0.1.0"
ENVIRONMENT = "LING_CHAT_ENGINE"


def register() -> None:
    """Install what the environment variable `LING_CHAT_ENGINE` (JSON, see `request`) asks for.

    Raises SystemExit with one sentence where that cannot be done: SGLang logs and forgets any
    other exception of a plugin, and would go on to serve without what was asked for.
    """
    wanted = os.environ.get(ENVIRONMENT)
    if not wanted:
        return
    from engine_bridge.sglang_plugin import hooks
    from engine_bridge.sglang_plugin.refusal import Refused
    from engine_bridge.sglang_plugin.request import Request

    try:
        hooks.install(Request.parse(wanted))
    except Refused as refused:
        raise SystemExit(str(refused)) from None
