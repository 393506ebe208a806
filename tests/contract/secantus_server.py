"""Runs SecantusDB's own command at a port until stdin ends; writes the port when it listens. Runs on an interpreter of its own."""

import os
import runpy
import socket
import sys
import threading
import time
from contextlib import suppress


def _report(port: int) -> None:
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            break
        time.sleep(0.02)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_report, args=[int(sys.argv[1])], daemon=True).start()
    sys.argv[1:2] = ["--port", sys.argv[1]]
    runpy.run_module("secantus", run_name="__main__", alter_sys=True)
