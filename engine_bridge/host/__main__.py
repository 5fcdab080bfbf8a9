"""`python -m engine_bridge.host`: started by a client, never by hand."""

import asyncio
import logging
import signal
import sys

from filelock import FileLock, Timeout

from engine_bridge.host import statefile
from engine_bridge.host.server import Host


async def _main() -> None:
    host = Host()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, host.leave)
    await host.serve()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    # The terminal's hang-up is the app's business; the host ends when its leases do.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with FileLock(statefile.lock_path(), timeout=2.0):
            asyncio.run(_main())
    except Timeout:
        sys.exit("Another engine host is running.")
