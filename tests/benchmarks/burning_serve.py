"""The engine's process, with a thread that burns a share of the CPU time that the others use."""

import sys
import threading
import time

from engine_bridge.backends.llamacpp import serve


def burn(share: float) -> None:
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
