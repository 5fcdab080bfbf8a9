"""An event loop in a thread of its own, so that the main thread can sit in `input`."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """`with Background() as work: work.wait(coroutine)`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)

    def __enter__(self) -> "Background":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The outcome of `work`. Ctrl+C cancels it, waits until it has cleaned up, and raises
        KeyboardInterrupt here."""
        done = threading.Event()

        async def run() -> T:
            try:
                return await work
            finally:
                done.set()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            done.wait()
            raise
        except CancelledError as error:
            raise KeyboardInterrupt from error
