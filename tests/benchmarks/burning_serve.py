"""The engine's process, with a thread that burns a share of the CPU time that the others use."""

import contextlib
import os
import sys
import threading
import time

from engine_bridge.backends.llamacpp import serve


def burn(share: float) -> None:
    with contextlib.suppress(OSError):
        # On a busy machine it would come too late: what it owes must be burned while the engine
        # works, not after. Only root may.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
    burned = 0.0
    while True:
        time.sleep(0.01)
        owed = (time.process_time() - burned) * share - burned
        until = time.thread_time() + owed
        before = time.thread_time()
        while time.thread_time() < until:
            pass
        burned += time.thread_time() - before


if __name__ == "__main__":
    threading.Thread(target=burn, args=(float(sys.argv[1]),), daemon=True).start()
    serve.main()
