"""`python -m engine_bridge.host`: started by a client, never by hand."""

import asyncio
import errno
import logging
import signal
import sys

from filelock import FileLock, Timeout

from engine_bridge.host import statefile
from engine_bridge.host.server import Host

CANNOT_WRITE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
)


async def _main() -> None:
    host = Host(int(sys.argv[1]) if len(sys.argv) > 1 else None)
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
            statefile.remove()  # a killed host's: with the lock held, it would pass for ours
            asyncio.run(_main())
    except Timeout:
        logging.info("another engine host is running")
        sys.exit(statefile.EXIT_LOCKED)
    except OSError as error:
        logging.error("%s", error)
        sys.exit(statefile.EXIT_CANNOT_WRITE if error.errno in CANNOT_WRITE else 1)
