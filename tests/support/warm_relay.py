"""A process in place of another: `python -ISE warm_relay.py PATH MODULE ARGUMENT...` lets the process that listens at the path fork.

What is forked runs the module with the streams, variables and folder of this process, which passes signals on and ends as it does. It is run
by its path, without the site: so it starts in a fiftieth of a second. What a job is, says `warm_process.py`.
"""

import json
import os
import signal
import socket
import sys
from contextlib import suppress


def main() -> None:
    """Ask for the fork, and end as it does."""
    path, module, *arguments = sys.argv[1:]
    umask = os.umask(0o077)
    os.umask(umask)
    job = {
        "module": module,
        "arguments": arguments,
        "variables": dict(os.environ),
        "folder": os.getcwd(),  # noqa: PTH109 (pathlib takes as long to load as all the rest)
        "umask": umask,
        "is_relayed": True,
    }
    line = json.dumps(job).encode() + b"\n"
    jobs = socket.socket(socket.AF_UNIX)
    jobs.connect(path)
    reading, status = os.pipe()
    sent = socket.send_fds(jobs, [line], [0, 1, 2, status])
    jobs.sendall(line[sent:])
    os.close(status)
    with open(reading) as numbers:  # noqa: PTH123 (a descriptor)
        pid = int(numbers.readline())
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(each, lambda number, _: _pass_on(pid, number))
        for stream in (0, 1, 2):
            os.close(stream)  # who reads what it writes sees that it has ended
        code = int(numbers.readline())
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _pass_on(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):  # its code is on the way
        os.kill(pid, number)


if __name__ == "__main__":
    main()
