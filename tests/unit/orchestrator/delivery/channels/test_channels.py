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
from parley.orchestrator.outgoing.reach import Reach, parse_hosts
from parley.orchestrator.outgoing.sender import GuardedSender
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


ALONE = Channels(GuardedSender(Reach(ports=None, needs_tls=True)), SystemClock())


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://a.example/hooks", "the host a.example may be reached by https:// alone"),
        ("http://1.1.1.1/hooks", "the host 1.1.1.1 may be reached by https:// alone"),
        ("https://127.0.0.1:9000/hooks", "the host 127.0.0.1 is at no public address"),
        ("https://localhost:9000/hooks", "the host localhost is at no public address"),
        ("https://[::1]/hooks", "the host ::1 is at no public address"),
    ],
)
def test_a_new_hook_is_refused_where_one_sees_that_its_host_is_out_of_reach(url: str, told: str) -> None:
    whole = f"{told}; the operator can name it in PARLEY_HOOK_HOSTS"
    webhook = HookTarget(webhook=WebhookTarget(url=url))
    chat = HookTarget(chat=ChatTarget(kind=ChatTarget.KIND_SLACK, url=url))
    assert ALONE.check_new(webhook) == (("webhook.url", whole),)
    assert ALONE.check_new(chat) == (("chat.url", whole),)


def test_a_hook_that_is_there_keeps_its_channel_when_its_host_is_no_longer_named() -> None:
    assert isinstance(
        ALONE.create(receiver(HookTarget(webhook=WebhookTarget(url="http://127.0.0.1/")))), WebhookChannel
    )


@pytest.mark.parametrize(
    ("named", "url"),
    [
        ("", "https://a.example/hooks"),
        ("", "https://1.1.1.1/hooks"),
        ("hooks.internal", "http://hooks.internal/hooks"),
        ("127.0.0.1", "http://127.0.0.1:9000/hooks"),
        ("127.0.0.0/8", "http://localhost:9000/hooks"),
        ("10.1.0.0/16", "http://where.internal/hooks"),
    ],
)
def test_a_new_hook_may_send_to_what_is_named_or_may_be_in_a_network_that_is_named(
    named: str, url: str
) -> None:
    hosts, networks = parse_hosts(named)
    channels = Channels(GuardedSender(Reach(networks, None, hosts, needs_tls=True)), SystemClock())
    assert channels.check_new(HookTarget(webhook=WebhookTarget(url=url))) == ()
    assert channels.check_new(FILE) == CLOSED.check(FILE)


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
