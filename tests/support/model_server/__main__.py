"""Run the model server as a process: prints its base URL on one line and serves until it is stopped."""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from tests.support.model_server.faults import ErrorShape
from tests.support.model_server.latency import Latency
from tests.support.model_server.rules import rule_from_json
from tests.support.model_server.server import ModelServer


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="model_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes any free port")
    parser.add_argument("--latency-ms", type=float, default=0.0, help="median, to the last byte")
    parser.add_argument("--sigma", type=float, default=0.0, help="above 0 the latency is log-normal")
    parser.add_argument("--seed", type=int, default=0, help="of the latency's draws")
    parser.add_argument("--first-token-share", type=float, default=1.0, help="of the latency, in a stream")
    parser.add_argument("--per-token-ms", type=float, default=0.0, help="added for each word of the answer")
    parser.add_argument("--answer-words", type=int, default=24, help="words of an answer made up")
    parser.add_argument("--positions", action="store_true", help="end texts with a position where asked to")
    parser.add_argument("--ledger", type=Path, help="file that gets each call as a line of JSON")
    parser.add_argument(
        "--forget-calls", action="store_true", help="keep no call in memory once it has ended"
    )
    parser.add_argument("--faults", type=Path, help="JSON file with a list of rules")
    parser.add_argument("--no-responses", action="store_true", help="Chat Completions only")
    parser.add_argument("--no-chat", action="store_true", help="Responses only")
    parser.add_argument("--no-schemas", action="store_true", help="400 on a request for JSON by a schema")
    parser.add_argument("--no-schema-streams", action="store_true", help="400 on one that is to be streamed")
    parser.add_argument("--no-tools", action="store_true", help="400 on a request with tools")
    parser.add_argument("--missing-shape", choices=[shape.value for shape in ErrorShape], default="detail")
    parser.add_argument("--require-key", help="401 on any other key")
    return parser.parse_args()


def _server(arguments: argparse.Namespace) -> ModelServer:
    rules = json.loads(arguments.faults.read_text()) if arguments.faults else []
    return ModelServer(
        port=arguments.port,
        latency=Latency(
            median=arguments.latency_ms / 1000,
            sigma=arguments.sigma,
            seed=arguments.seed,
            first_token_share=arguments.first_token_share,
            per_token=arguments.per_token_ms / 1000,
        ),
        rules=[rule_from_json(item) for item in rules],
        ledger_file=arguments.ledger,
        keeps_calls=not arguments.forget_calls,
        answer_words=arguments.answer_words,
        states_positions=arguments.positions,
        responses=not arguments.no_responses,
        chat=not arguments.no_chat,
        schema_support=not arguments.no_schemas,
        schema_streaming=not arguments.no_schema_streams,
        tool_support=not arguments.no_tools,
        missing_shape=ErrorShape(arguments.missing_shape),
        require_key=arguments.require_key,
    )


async def _serve(server: ModelServer) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with server:
        print(server.base_url, flush=True)  # noqa: T201 - the line a parent waits for
        await stopped.wait()


def main() -> int:
    """Serve until SIGINT or SIGTERM; 2 for a file that cannot be read or holds no rules."""
    arguments = _arguments()
    try:
        server = _server(arguments)
    except (OSError, ValueError) as problem:
        print(f"model_server: {problem}", file=sys.stderr)  # noqa: T201
        return 2
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(server))
    return 0


if __name__ == "__main__":
    sys.exit(main())
