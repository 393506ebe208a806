"""One-time links: nobody makes or changes a token without the secret, and none answers another checkpoint than its own."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from parley.orchestrator.links.checkpoint import actions_of, find_open_checkpoint, intervention_of
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.links.uses import LINK_USES, LinkUses
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.model.times import timestamp
from parley.storage.opening import open_store
from parley.storage.ports import Documents
from parley.v1.debate_pb2 import Approval, DebateSpec, Direction, Questions
from parley.v1.event_pb2 import CheckpointClosed, CheckpointExpired, CheckpointOpened, DebateCreated, Event
from parley.v1.link_pb2 import (
    LINK_ACTION_APPROVE,
    LINK_ACTION_CONTINUE,
    LINK_ACTION_END,
    LinkClaims,
)
from tests.support.memory_log import MemoryLog, WrittenLog

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
OLD, NEW = "o" * 32, "n" * 32
DEBATE = "deb-20260504-120000-aaaaaaaa"
KEY = "synthesis/approval"


def claims(sequence: int = 2, checkpoint: str = KEY) -> LinkClaims:
    return LinkClaims(
        tenant="acme",
        debate_id=DEBATE,
        checkpoint=checkpoint,
        sequence=sequence,
        action=LINK_ACTION_APPROVE,
        hook_id="hook-0123456789ab",
        expire_time=timestamp(NOW),
    )


def test_a_token_says_what_was_signed_and_the_same_claims_have_the_same_token() -> None:
    tokens = LinkTokens([OLD])
    token = tokens.sign(claims())
    assert tokens.read(token) == claims()
    assert LinkTokens([OLD]).sign(claims()) == token


def test_a_token_of_another_secret_is_none_and_one_of_a_secret_that_was_replaced_is() -> None:
    token = LinkTokens([OLD]).sign(claims())
    assert LinkTokens([NEW]).read(token) is None
    assert LinkTokens([NEW, OLD]).read(token) == claims()
    assert LinkTokens([NEW, OLD]).sign(claims()) != token


@pytest.mark.parametrize("change", range(5, 200, 7))
def test_a_token_of_which_a_character_is_changed_is_none(change: int) -> None:
    tokens = LinkTokens([OLD])
    token = tokens.sign(claims())
    change %= len(token)
    changed = token[:change] + ("x" if token[change] != "x" else "y") + token[change + 1 :]
    found = tokens.read(changed)
    assert found is None or changed[-1] != token[-1]  # the last character has bits that say nothing


@pytest.mark.parametrize("text", ["", "link_", "link_!!!!", "parley_x", "link_" + "A" * 5000, "link_Ä"])
def test_what_is_no_token_is_none(text: str) -> None:
    assert LinkTokens([OLD]).read(text) is None


def test_links_do_what_their_checkpoint_takes() -> None:
    assert list(actions_of(CheckpointOpened(direction=Direction()))) == [
        LINK_ACTION_CONTINUE,
        LINK_ACTION_END,
    ]
    assert list(actions_of(CheckpointOpened(approval=Approval()))) == [LINK_ACTION_APPROVE]
    assert list(actions_of(CheckpointOpened(questions=Questions()))) == [LINK_ACTION_CONTINUE]
    done = intervention_of(claims())
    assert (done.checkpoint, done.approve.approved) == (KEY, True)


def open_checkpoint(key: str = KEY) -> Event:
    return create_event(key, CheckpointOpened(approval=Approval(text="Use Redis.")))


async def write_log(*events: Event) -> MemoryLog:
    log = MemoryLog()
    debate = WrittenLog(log, "acme", DEBATE)
    await debate.write(create_event("created", DebateCreated(spec=DebateSpec(question="Redis?"))))
    for event in events:
        await debate.write(event)
    return log


async def test_a_checkpoint_that_is_open_is_found_with_what_it_asks() -> None:
    found = await find_open_checkpoint(await write_log(open_checkpoint()), claims())
    assert found is not None
    assert (found.question, found.asked) == ("Redis?", "Use Redis.")


@pytest.mark.parametrize("end", [CheckpointClosed(request_id="r"), CheckpointExpired()])
async def test_a_link_does_not_answer_its_checkpoint_when_that_is_opened_again(
    end: CheckpointClosed | CheckpointExpired,
) -> None:
    log = await write_log(open_checkpoint(), create_event(KEY, end), open_checkpoint())
    assert await find_open_checkpoint(log, claims(sequence=2)) is None
    assert await find_open_checkpoint(log, claims(sequence=4)) is not None


async def test_a_link_answers_no_other_checkpoint_and_none_of_a_debate_that_is_gone() -> None:
    log = await write_log(open_checkpoint("round/1/checkpoint"))
    assert await find_open_checkpoint(log, claims()) is None
    assert await find_open_checkpoint(log, claims(sequence=1)) is None
    assert await find_open_checkpoint(log, claims(sequence=9)) is None
    assert await find_open_checkpoint(MemoryLog(), claims()) is None


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(LINK_USES)
        yield store.documents


async def test_a_link_is_used_once_and_its_use_is_kept_as_a_hash_until_it_has_expired(
    documents: Documents,
) -> None:
    uses = LinkUses(documents)
    assert await uses.add("link_a", NOW, NOW)
    assert await uses.has("link_a")
    assert not await uses.add("link_a", NOW, NOW)
    assert not await uses.has("link_b")
    assert all("link_a" not in each.key for each in await documents.find(LINK_USES, {}))
    assert await uses.add("link_b", NOW + timedelta(days=9), NOW + timedelta(days=2))
    assert not await uses.has("link_a")
    assert await uses.has("link_b")
