"""Mail over real SMTP: what arrives, where it may go, and what a server's refusal means."""

import ssl
from pathlib import Path

import pytest

from parley.orchestrator.delivery.channels import mail as mail_module
from parley.orchestrator.delivery.channels.mail import MailChannel
from parley.orchestrator.delivery.channels.mail_server import Mail, domain_of, is_mail_server
from parley.orchestrator.delivery.message import DeliveryError
from tests.support.certificates import Authority
from tests.support.made_messages import make_message
from tests.support.mail_server import mail_server
from tests.support.ports import free_ports

DOMAINS = frozenset({"acme.example"})


def channel(port: int, *, user: str = "", scheme: str = "smtp", host: str = "127.0.0.1") -> MailChannel:
    mail = Mail(f"{scheme}://{user}{host}:{port}", "parley@mail.example", DOMAINS)
    return MailChannel(mail, "team@acme.example")


async def failure(sent: MailChannel) -> DeliveryError:
    with pytest.raises(DeliveryError) as failed:
        await sent.send(make_message())
    assert "s3cret" not in str(failed.value)
    assert "\n" not in str(failed.value)
    return failed.value


async def test_a_mail_has_title_text_and_link_and_the_same_id_each_time() -> None:
    async with mail_server() as server:
        for _ in range(2):
            text = "Größe?\n\nJa.\n.\nMore."
            await channel(server.port).send(make_message(text=text))
    first, again = server.mails
    assert first["Subject"] == "Größe?"
    assert (first["From"], first["To"]) == ("parley@mail.example", "team@acme.example")
    assert first["Message-ID"] == again["Message-ID"] == "<dlv-1@mail.example>"
    assert first["Auto-Submitted"] == "auto-generated"
    assert first.get_content_type() == "text/plain"
    assert first.get_content().split("\n\n")[:2] == ["Größe?", "Ja.\n.\nMore."]
    assert "https://parley.example/d/1" in first.get_content()
    assert server.recipients == ["TO:<team@acme.example>"] * 2
    assert not server.logins


async def test_no_text_of_an_agent_becomes_a_header() -> None:
    text = "A title\r\nBcc: all@acme.example\n\nBcc: all@acme.example\u202e\x1b[31m"
    async with mail_server() as server:
        await channel(server.port).send(make_message(text=text))
    (mail,) = server.mails
    assert "Bcc" not in mail
    assert mail["Subject"] == "A title"
    assert not {"\u202e", "\x1b"} & set(mail.get_content())
    assert server.recipients == ["TO:<team@acme.example>"]


async def test_a_user_signs_in_over_tls_with_a_certificate_that_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.sign("mail"))
    async with mail_server(context) as server:
        sent = channel(server.port, user="me:s3cret%40@", scheme="smtps")
        assert str(await failure(sent)).startswith("the mail server could not be used: ")
        assert not server.logins
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        await sent.send(make_message())
    assert server.logins == ["me s3cret@"]
    assert len(server.mails) == 1


async def test_no_password_is_sent_to_another_machine_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    async with mail_server() as server:  # which offers no STARTTLS
        sent = channel(server.port, user="me:s3cret@")
        await sent.send(make_message())
        assert len(server.logins) == 1, "on this machine it is"
        monkeypatch.setattr(
            "parley.orchestrator.delivery.channels.mail_server.is_loopback", lambda host: False
        )
        await failure(sent)
    assert len(server.logins) == 1


@pytest.mark.parametrize(
    ("refuses", "told", "permanent"),
    [
        ({"RCPT": "550 no such user"}, "the mail server answered 550: no such user", True),
        ({"RCPT": "450 try later"}, "the mail server answered 450: try later", False),
        ({"MAIL": "550 go away"}, "the mail server answered 550: go away", False),
        ({"DATA": "554 spam"}, "the mail server answered 554: spam", False),
    ],
)
async def test_a_refusal_is_told_and_ends_a_hook_only_if_there_is_no_such_mailbox(
    refuses: dict[str, str], told: str, permanent: bool
) -> None:
    async with mail_server() as server:
        server.refuses = refuses
        failed = await failure(channel(server.port))
    assert (str(failed), failed.permanent) == (told, permanent)


async def test_a_server_that_is_away_or_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "could not be used" in str(await failure(channel(next(free_ports()))))
    monkeypatch.setattr(mail_module, "_SECONDS", 0.2)
    async with mail_server() as server:
        server.stalls = True
        assert str(await failure(channel(server.port))) == "the mail server did not answer within 0.2 s"
    async with mail_server() as server:
        server.delay = 0.15  # each answer is in time, and all of them are not
        assert str(await failure(channel(server.port))) == "the mail server did not answer within 0.2 s"


@pytest.mark.parametrize(
    ("address", "is_allowed"),
    [
        ("team@acme.example", True),
        ("a.b+c@ACME.example", True),
        ("team@other.example", False),
        ("team@sub.acme.example", False),
        ("team@acme.example.evil.example", False),
        ("team@evil.example, x@acme.example", False),
        ("x@evil.example\r\nTo: team@acme.example", False),
        ("team@acme.example, x@evil.example", False),
        ("team@acme.example\r\nBcc: x@evil.example", False),
        ("<team@acme.example>", False),
        ("evil.example!x@acme.example", False),
        ("x%evil.example@acme.example", False),
        ("@acme.example", False),
        ("team", False),
        ("", False),
    ],
)
def test_mail_goes_to_domains_that_are_allowed(address: str, is_allowed: bool) -> None:
    assert Mail("smtp://localhost", "a@b.example", DOMAINS).allows(address) == is_allowed


def test_what_is_no_address_has_no_domain() -> None:
    assert domain_of("a@b.Example") == "b.example"
    assert domain_of("a b@c.example") == ""


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("smtp://mail.example", True),
        ("smtps://me:s3cret%40@mail.example:465", True),
        ("http://mail.example", False),
        ("smtp://", False),
        ("smtp://me@mail.example", False),
        ("smtp://mail.example/path", False),
    ],
)
def test_a_mail_server_is_named_by_a_url(url: str, is_one: bool) -> None:
    assert is_mail_server(url) == is_one


def test_the_servers_password_is_not_shown() -> None:
    assert "s3cret" not in repr(channel(25, user="me:s3cret@"))
