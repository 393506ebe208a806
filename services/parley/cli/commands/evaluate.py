"""The command that has a finished debate judged."""

import asyncio

from parley.cli.commands.connection import find_debate_id
from parley.cli.commands.debate import DebateCommand
from parley.cli.input.evaluation_request import (
    EvaluationOptions,
    debate_options,
    evaluation_request,
    output_format,
)
from parley.cli.terminal.results import write_evaluation
from parley.cli.translate_errors import translate_errors
from parley.cli.working_folder import load_dotenv
from parley.client import Debate, DebateSpec, ParleyClient

__all__ = ["run_evaluation"]


def run_evaluation(options: EvaluationOptions) -> int:
    """Hold the evaluation and return the exit code. Raise CommandError."""
    with translate_errors():
        load_dotenv()
        return asyncio.run(_EvaluationCommand(options).run())


class _EvaluationCommand(DebateCommand):
    evaluators = True

    def __init__(self, options: EvaluationOptions) -> None:
        super().__init__(debate_options(options), evaluation_request(options))
        self._format = output_format(options)
        self._output = options.output

    async def resolve_spec(self, parley: ParleyClient, spec: DebateSpec) -> None:
        spec.evaluation.debate_id = await find_debate_id(parley, spec.evaluation.debate_id)

    def write_answer(self, state: Debate) -> None:
        write_evaluation(state, self._format, self._output)
