"""The child process of `local_model`: llama.cpp's OpenAI-compatible server on one GGUF file.

Run by path, with arguments GGUF, MODEL, CONTEXT_TOKENS, SLOTS and SAMPLING (a JSON object). It picks a free loopback port, writes its base
URL as one line on standard output when it answers, and lives until its standard input ends: the other end of
that pipe is the parent, so it ends with the parent however the parent dies. Nothing else is written to
standard output; what llama.cpp complains about goes to standard error.
"""

import http.client
import json
import os
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import xllamacpp

DECODE_THREADS = 1
# Prompts are read almost twice as fast by two threads, as long as waiting threads sleep (OMP_WAIT_POLICY, set by
# the parent). Decoding gains nothing from a second one then.
PROMPT_THREADS = min(2, os.cpu_count() or 1)

ANSWER_TOKENS = 256  # if a request names no limit; the model seldom ends a long text by itself

ERRORS_ONLY = 1


def main() -> None:
    """Serve until standard input ends."""
    gguf, model, context_tokens, slots, sampling = sys.argv[1:]
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library that prints must not be taken for the report

    # Bound to a name: the server stops when it is collected.
    server = xllamacpp.Server(_parameters(gguf, model, int(context_tokens), int(slots), json.loads(sampling)))
    _wait_until_healthy(server.listening_address)
    report.write(f"{server.listening_address}/v1\n")
    report.close()
    sys.stdin.buffer.read()
    os._exit(0)  # at once: waiting for requests under way would keep it after its parent


def _parameters(gguf: str, model: str, context_tokens: int, slots: int, sampling: dict[str, Any]) -> Any:
    parameters = xllamacpp.CommonParams()
    parameters.model.path = gguf
    parameters.model_alias = {model}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = slots
    parameters.n_ctx = slots * context_tokens
    parameters.n_predict = ANSWER_TOKENS
    parameters.cpuparams.n_threads = DECODE_THREADS
    parameters.cpuparams.poll = 0
    parameters.cpuparams_batch.n_threads = PROMPT_THREADS
    parameters.cpuparams_batch.poll = 0
    parameters.cache_ram_mib = 0
    parameters.warmup = False
    parameters.sampling.temp = sampling["temperature"]
    parameters.sampling.top_p = sampling["top_p"]
    parameters.sampling.dry_multiplier = sampling["dry_multiplier"]
    parameters.sampling.dry_allowed_length = sampling["dry_allowed_length"]
    parameters.sampling.penalty_repeat = sampling["repeat_penalty"]
    parameters.cors_origins = "http://page.invalid"  # no page in a browser may read from it
    parameters.cors_origins_explicit = True
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.verbosity = ERRORS_ONLY
    return parameters


def _wait_until_healthy(address: str) -> None:
    """Return when the server says it is ready. The parent bounds the wait."""
    location = urlsplit(address)
    while True:
        connection = http.client.HTTPConnection(location.hostname or "127.0.0.1", location.port, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        except OSError:
            pass  # not listening yet
        finally:
            connection.close()
        time.sleep(0.02)


if __name__ == "__main__":
    main()
