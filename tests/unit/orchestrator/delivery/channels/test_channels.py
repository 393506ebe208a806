"""From a hook to its channel: what the operator does not allow is refused, and said."""

import json
from pathlib import Path

import pytest

from parley.orchestrator.delivery.channels.channels import Channels
from parley.orchestrator.delivery.channels.chat import ChatChannel
from parley.orchestrator.delivery.channels.file import FileChannel
from parley.orchestrator.delivery.channels.mail import MailChannel
from parley.orchestrator.delivery.channels.mail_server import Mail
from parley.orchestrator.delivery.channels.webhook import WebhookChannel
from parley.orchestrator.delivery.message import DeliveryError, Receiver
from parley.runtime.clock import SystemClock
from parley.v1.hook_pb2 import (
    ChatTarget,
    FileTarget,
    Hook,
    HookTarget,
    MailTarget,
    StdoutTarget,
    WebhookTarget,
)
from tests.support.made_messages import SENDER, make_message

CLOSED = Channels(SENDER, SystemClock())
SERVER = Mail("smtp://localhost", "parley@acme.example", frozenset({"acme.example"}))
OPEN = Channels(SENDER, SystemClock(), folder=Path("/allowed"), allows_stdout=True, mail=SERVER)
WEBHOOK = HookTarget(webhook=WebhookTarget(url="https://a.example/hooks"))
CHAT = HookTarget(chat=ChatTarget(kind=ChatTarget.KIND_TEAMS, url="https://a.example/hooks"))
FILE = HookTarget(file=FileTarget(path="a.jsonl"))
STDOUT = HookTarget(stdout=StdoutTarget())
MAIL = HookTarget(mail=MailTarget(address="team@acme.example"))


def receiver(target: HookTarget) -> Receiver:
    return Receiver("acme", Hook(id="hook-1", target=target), ("whsec_c2VjcmV0",))


def test_each_target_has_its_channel() -> None:
    assert isinstance(CLOSED.create(receiver(WEBHOOK)), WebhookChannel)
    assert isinstance(CLOSED.create(receiver(CHAT)), ChatChannel)
    assert OPEN.create(receiver(FILE)) == FileChannel(Path("/allowed"), "acme", "a.jsonl")
    assert OPEN.create(receiver(MAIL)) == MailChannel(SERVER, "team@acme.example")
    for each in (WEBHOOK, CHAT, FILE, STDOUT, MAIL):
        assert OPEN.check(each) == ()


@pytest.mark.parametrize(
    ("target", "field", "told"),
    [
        (FILE, "file", "PARLEY_HOOK_FOLDER"),
        (STDOUT, "stdout", "PARLEY_HOOK_STDOUT"),
        (MAIL, "mail", "PARLEY_MAIL_SERVER"),
        (HookTarget(), "", "must be a webhook"),
        (HookTarget(chat=ChatTarget(url="https://a.example")), "chat.kind", "a chat that is known"),
        (HookTarget(webhook=WebhookTarget(url="ftp://a.example")), "webhook.url", "only http"),
        (HookTarget(webhook=WebhookTarget(url="https://u:p@a.example")), "webhook.url", "user or a password"),
        (HookTarget(webhook=WebhookTarget()), "webhook.url", "with a host"),
        (
            HookTarget(chat=ChatTarget(kind=ChatTarget.KIND_SLACK, url="file:///etc/passwd")),
            "chat.url",
            "only http",
        ),
    ],
)
def test_what_is_not_allowed_is_named_with_its_field_and_gets_no_channel(
    target: HookTarget, field: str, told: str
) -> None:
    ((named, wrong),) = CLOSED.check(target)
    assert named == field
    assert told in wrong
    with pytest.raises(DeliveryError, match=told) as refused:
        CLOSED.create(receiver(target))
    assert refused.value.permanent


def test_a_path_out_of_the_folder_gets_no_channel() -> None:
    ((field, wrong),) = OPEN.check(HookTarget(file=FileTarget(path="../a")))
    assert (field, "none `.` or `..`" in wrong) == ("file.path", True)


def test_mail_to_another_domain_gets_no_channel() -> None:
    ((field, wrong),) = OPEN.check(HookTarget(mail=MailTarget(address="team@other.example")))
    assert (field, wrong) == (
        "mail.address",
        "must be an address in a domain that the operator allows: acme.example",
    )


async def test_standard_output_gets_a_line_of_json_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = '{"text":\n "a\u202eb\x9b31mc\u2028"}'
    await OPEN.create(receiver(STDOUT)).send(make_message(body=body.encode()))
    line = capsys.readouterr().out
    assert line.count("\n") == 1
    assert line.isascii()
    assert json.loads(line) == {"text": "a\u202eb\x9b31mc\u2028"}
