"""The command that runs an evaluation, from the request to the scores."""

import asyncio

from parley.cli.commands.connection import find_debate_id
from parley.cli.commands.debate import DebateCommand, RunOptions
from parley.cli.input.config_file import find_config
from parley.cli.input.evaluation_request import (
    EvaluationFormat,
    EvaluationOptions,
    build_evaluation_request,
    evaluation_notices,
    output_format,
)
from parley.cli.terminal.files import check_output_path
from parley.cli.terminal.results import write_evaluation
from parley.cli.translate_errors import translate_errors
from parley.cli.working_folder import load_dotenv
from parley.client import Debate, DebateSpec, ParleyClient


def run_evaluation(options: EvaluationOptions) -> int:
    """Run the evaluation and return the exit code. Raise CommandError."""
    with translate_errors():
        load_dotenv()
        if options.output is not None:
            check_output_path("--output", options.output)
        found = find_config(options.config, evaluators=True)
        request = build_evaluation_request(options, found)
        run = RunOptions(options.server, options.model, options.output, verbose=options.verbose)
        command = _EvaluationCommand(run, found, request, evaluation_notices(options, found))
        command.form = output_format(options)
        return asyncio.run(command.run())


class _EvaluationCommand(DebateCommand):
    evaluators = True
    form: EvaluationFormat = "markdown"

    async def resolve_spec(self, parley: ParleyClient, spec: DebateSpec) -> None:
        spec.evaluation.debate_id = await find_debate_id(parley, spec.evaluation.debate_id)

    def write_answer(self, state: Debate) -> None:
        write_evaluation(state, self.form, self._options.output)
