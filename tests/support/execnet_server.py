"""A process that does what execnet tells it, as `popen` starts one: with what it has imported before, and not with source that is sent."""

import sys

from execnet.gateway_base import get_execmodel, init_popen_io, serve


def main() -> None:
    """Serve over stdin and stdout until who started it ends it."""
    sys.stdin.readline()  # the source
    io = init_popen_io(get_execmodel("main_thread_only"))
    io.write(b"1")
    serve(io, id="worker")  # type: ignore[arg-type]  # execnet gives it the same


if __name__ == "__main__":
    main()
