"""The commands about memory: search it, show what is remembered of a debate, forget it."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import grpc

from parley.cli.command_name import suggest
from parley.cli.commands.confirmation import confirm
from parley.cli.commands.connection import Connection, connect_orchestrator, find_debate_id
from parley.cli.commands.pages import take_first
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text, say
from parley.cli.terminal.markdown import print_markdown
from parley.cli.terminal.memories import (
    found_lines,
    memory_head_lines,
    memory_page,
    moment_lines,
    pattern_lines,
    position_lines,
    text_width,
)
from parley.cli.terminal.message_json import json_value, message_to_json, to_json
from parley.cli.terminal.words import SHORT_WIDTH, to_line
from parley.client import ParleyClient, ParleyError
from parley.runtime.backoff import Backoff, retry
from parley.runtime.clock import SystemClock
from parley.v1.memory_pb2 import (
    MOMENT_KIND_UNSPECIFIED,
    CritiquePattern,
    GetRecordResponse,
    MomentKind,
    PastDebate,
)

_START_SECONDS: Final = 60.0
"""How much longer memory that starts with this command is waited for: its first search loads a model."""
_STARTING: Final = frozenset({"MEMORY_UNAVAILABLE", "CONVERGENCE_UNAVAILABLE"})
_BACKOFF: Final = Backoff(first=0.2, maximum=1.0)

T = TypeVar("T")


async def search_memory(server: str | None, text: str, limit: int, domain: str, *, as_json: bool) -> None:
    """Print past debates that are like the text, best first. Raise CommandError for a blank one."""
    if not text.strip():
        raise CommandError("TEXT is blank; say what past debates should be about", INVALID_ARGUMENTS)
    async with connect_orchestrator(server, "memory") as (link, parley):

        async def search() -> list[PastDebate]:
            return [each async for each in parley.search_memory(text, limit=limit, domain=domain)]

        found = await _ask_once_started(link, search)
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    for number, debate in enumerate(found, start=1):
        for line in found_lines(number, debate, text_width()):
            print_line(line)
    if found:
        say(f"All that is remembered of one: {suggest(f'memory show {found[0].debate_id}', server)}")
    else:
        wider = "use other words, or leave --domain out" if domain else "use other words"
        say(f"Nothing like it is remembered; {wider}. All debates: {suggest('list', server)}")


async def _ask_once_started(link: Connection, ask: Callable[[], Awaitable[T]]) -> T:
    """Return what memory answers. One of this process that is still starting is waited for, which is said."""
    try:
        return await ask()
    except ParleyError as error:
        if not (link.own and _is_starting(error)):
            raise
    say(f"memory is still starting; waiting for it, at most {_START_SECONDS:.0f} s")
    return await retry(ask, on=_is_starting, backoff=_BACKOFF, clock=SystemClock(), seconds=_START_SECONDS)


def _is_starting(error: BaseException) -> bool:
    return isinstance(error, ParleyError) and error.reason in _STARTING


async def list_patterns(
    server: str | None, text: str, limit: int, domain: str, *, only_successful: bool, as_json: bool
) -> None:
    """Print kinds of issue that debates raise, the first `limit` of them."""
    async with connect_orchestrator(server, "memory") as (link, parley):

        async def list_some() -> list[CritiquePattern]:
            pages = parley.list_patterns(
                text, domain=domain, only_successful=only_successful, page_size=min(limit, 200)
            )
            return await take_first(pages, limit)

        found = await _ask_once_started(link, list_some)
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    for number, pattern in enumerate(found, start=1):
        for line in pattern_lines(number, pattern, text_width()):
            print_line(line)
    if not found:
        say(
            f"No kind of issue is known{' there' if domain or only_successful else ' yet'}: debates raise them in critiques."
        )


async def list_positions(
    server: str | None, agent: str, limit: int, *, only_flips: bool, as_json: bool
) -> None:
    """Print where agents stood in the end of debates, the latest `limit` stands."""
    async with connect_orchestrator(server, "memory") as (_, parley):
        found = await take_first(
            parley.list_positions(agent, only_flips=only_flips, page_size=min(limit, 200)), limit
        )
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    for number, position in enumerate(found, start=1):
        for line in position_lines(number, position, text_width()):
            print_line(line)
    if not found:
        say(f"No {'flip' if only_flips else 'stand'} is known{' of that agent' if agent else ' yet'}.")


async def list_moments(server: str | None, kind: str | None, limit: int, *, as_json: bool) -> None:
    """Print what stands out in debates, of the latest debate first, the first `limit` moments."""
    number = (
        MomentKind.Value(f"MOMENT_KIND_{kind.upper().replace('-', '_')}") if kind else MOMENT_KIND_UNSPECIFIED
    )
    async with connect_orchestrator(server, "memory") as (_, parley):
        found = await take_first(parley.list_moments(number, page_size=min(limit, 200)), limit)
    if as_json:
        print_text(to_json([json_value(each) for each in found]))
        return
    for moment in found:
        for line in moment_lines(moment, text_width()):
            print_line(line)
    if not found:
        say(
            "No moment is known: debates leave one if a lone dissenter wins, all change their minds, or a decision is reversed."
        )


async def show_memory(server: str | None, debate_id: str, *, as_json: bool) -> None:
    """Print all that is remembered of a debate. Raise CommandError."""
    async with connect_orchestrator(server, "memory") as (_, parley):
        debate = await find_debate_id(parley, debate_id)
        found = await _find_memory(parley, debate)
    if found is None:
        message = f"nothing is remembered of {debate}; the debate itself: {suggest(f'show {debate}', server)}"
        raise CommandError(message, GENERAL)
    if as_json:
        print_text(message_to_json(found))
        return
    for line in memory_head_lines(found.debate, text_width()):
        print_line(line)
    print_markdown(f"\n{memory_page(found)}\n")


async def forget_memory(server: str | None, debate_id: str, *, is_sure: bool) -> None:
    """Forget a debate after the user has confirmed it. Raise CommandError."""
    async with connect_orchestrator(server, "memory") as (_, parley):
        debate = await find_debate_id(parley, debate_id)
        found = None if is_sure else await _find_memory(parley, debate)
        if found is not None:
            question = to_line(found.debate.question, SHORT_WIDTH)
            await confirm(
                f"Forget {debate} for good? {question}", "Type yes to forget it.", "nothing was forgotten"
            )
        existed = await parley.forget_memory(debate) if is_sure or found is not None else False
    print_line(f"Forgotten: {debate}." if existed else f"Nothing is remembered of {debate}.")


async def _find_memory(parley: ParleyClient, debate_id: str) -> GetRecordResponse | None:
    try:
        return await parley.get_memory(debate_id)
    except ParleyError as error:
        if error.code == grpc.StatusCode.NOT_FOUND:
            return None
        raise
