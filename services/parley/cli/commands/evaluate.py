"""The command that has a finished debate judged."""

import asyncio

from parley.cli.commands.debate import DebateCommand
from parley.cli.commands.find_debate import debate_id_of
from parley.cli.dotenv_file import take_dotenv
from parley.cli.input.evaluation_request import (
    EvaluationOptions,
    debate_options,
    evaluation_request,
    output_format,
)
from parley.cli.terminal.evaluation import put_evaluation
from parley.cli.translate_errors import translated
from parley.client import Debate, DebateSpec, ParleyClient

__all__ = ["evaluate"]


def evaluate(options: EvaluationOptions) -> int:
    """Hold the evaluation and return the exit code. Raise CommandError."""
    with translated():
        take_dotenv()
        return asyncio.run(_EvaluationCommand(options).run())


class _EvaluationCommand(DebateCommand):
    evaluators = True

    def __init__(self, options: EvaluationOptions) -> None:
        super().__init__(debate_options(options), evaluation_request(options))
        self._format = output_format(options)
        self._output = options.output

    async def complete(self, parley: ParleyClient, spec: DebateSpec) -> None:
        spec.evaluation.debate_id = await debate_id_of(parley, spec.evaluation.debate_id)

    def put(self, state: Debate) -> None:
        put_evaluation(state, self._format, self._output)
