"""Serve a store for the duration of a test."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from auxmod.serving.server import Server


@contextlib.contextmanager
def served(store: Path, host: str = "127.0.0.1") -> Iterator[Server]:
    with Server(store, host, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
