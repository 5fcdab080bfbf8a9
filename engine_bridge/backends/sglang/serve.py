"""The engine process, run by the engine's own interpreter: standard library and SGLang only.

SGLang's flags are its arguments; the key comes as one line of JSON on standard input, so that it
is in no argv. Serves until told to end. The end of standard input means that the host is gone:
the whole process group leaves with it, schedulers included.
"""

import json
import os
import signal
import sys
import threading
import time

TERM_WAIT_S = 4.0


def main() -> None:
    """Serve until standard input ends or a signal comes."""
    line = sys.stdin.buffer.readline()
    if not line:
        sys.exit("No specification on standard input.")
    threading.Thread(target=_leave_with_the_host, daemon=True).start()
    print("engine: importing SGLang", flush=True)
    from sglang.launch_server import run_server
    from sglang.srt.plugins import load_plugins
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    load_plugins()
    server_args = prepare_server_args(sys.argv[1:])
    server_args.api_key = json.loads(line)["api_key"]
    try:
        run_server(server_args)
    finally:
        kill_process_tree(os.getpid(), include_parent=False)


def _leave_with_the_host() -> None:
    sys.stdin.buffer.read()
    # The host starts us in a group of our own; never end somebody else's.
    end = os.killpg if os.getpgrp() == os.getpid() else os.kill
    end(os.getpid(), signal.SIGTERM)
    time.sleep(TERM_WAIT_S)
    end(os.getpid(), signal.SIGKILL)


# Schedulers are spawned: they import this file again under another name.
if __name__ == "__main__":
    main()
