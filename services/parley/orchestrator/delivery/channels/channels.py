"""From a hook to its channel, within what the operator allows."""

from pathlib import Path

from msgspec import Struct

from parley.orchestrator.delivery.channels.mail_server import Mail
from parley.orchestrator.delivery.channels.post import HOW_TO_ALLOW
from parley.orchestrator.delivery.message import Channel, DeliveryError, Receiver
from parley.orchestrator.outgoing.sender import GuardedSender
from parley.orchestrator.outgoing.web_address import OutOfReachError, parse_address, refuse_address
from parley.runtime.clock import Clock
from parley.v1.hook_pb2 import HookTarget

_NO_FOLDER = "the operator allows no files: PARLEY_HOOK_FOLDER is not set"
_NO_STDOUT = "the operator does not allow standard output: PARLEY_HOOK_STDOUT is not true"
_NO_MAIL = "the operator allows no mail: PARLEY_MAIL_SERVER is not set"
_NO_PATH = (
    "must be at most 10 names between single slashes, each at most 200 bytes and none `.` or `..`, such as"
    " debates/results.jsonl"
)


class Channels(Struct, frozen=True):
    """Creates channels to receivers. One is imported when there is a hook for it: most commands have none.

    Attributes:
        sender: Sends to URLs, within what may be reached.
        folder: Where files may be written; None: nowhere.
        allows_stdout: Whether standard output may be written to.
        mail: How mail is sent; None: not at all.
    """

    sender: GuardedSender
    clock: Clock
    folder: Path | None = None
    allows_stdout: bool = False
    mail: Mail | None = None

    def check(self, target: HookTarget) -> tuple[tuple[str, str], ...]:
        """Return what is wrong with a target: the path of a field below it, and why; empty if nothing is.

        Whether a host may be reached is looked at with each request.
        """
        kind = target.WhichOneof("target")
        problems: list[tuple[str, str]] = []
        if kind == "webhook":
            problems.append(("webhook.url", refuse_address(target.webhook.url)))
        elif kind == "chat":
            from parley.orchestrator.delivery.channels.chat import BODIES

            problems.append(
                ("chat.kind", "" if target.chat.kind in BODIES else "must be a chat that is known")
            )
            problems.append(("chat.url", refuse_address(target.chat.url)))
        elif kind == "file":
            from parley.orchestrator.delivery.channels.file import is_path

            problems.append(("file", "" if self.folder else _NO_FOLDER))
            problems.append(("file.path", "" if is_path(target.file.path) else _NO_PATH))
        elif kind == "stdout":
            problems.append(("stdout", "" if self.allows_stdout else _NO_STDOUT))
        elif kind == "mail":
            if self.mail is None:
                problems.append(("mail", _NO_MAIL))
            elif not self.mail.allows(target.mail.address):
                domains = ", ".join(sorted(self.mail.domains))
                problems.append(
                    ("mail.address", f"must be an address in a domain that the operator allows: {domains}")
                )
        else:
            problems.append(("", "must be a webhook, a chat, a file, stdout or mail"))
        return tuple((field, wrong) for field, wrong in problems if wrong)

    def check_new(self, target: HookTarget) -> tuple[tuple[str, str], ...]:
        """Return what is wrong with a target that no hook has yet: as `check`, and a URL that one sees to be out of reach.

        The hooks that are there are tried again: the operator may name their hosts meanwhile.
        """
        kind = target.WhichOneof("target")
        problems = self.check(target)
        if problems or kind not in {"webhook", "chat"}:
            return problems
        try:
            self.sender.reach.check_sight(parse_address(getattr(target, kind).url))
        except OutOfReachError as error:
            return ((f"{kind}.url", f"{error}{HOW_TO_ALLOW}"),)
        return ()

    def create(self, receiver: Receiver) -> Channel:
        """Return the channel to a receiver. Raise DeliveryError if its target is not allowed, or not any more."""
        target = receiver.hook.target
        for _, wrong in self.check(target):
            raise DeliveryError(wrong, permanent=True)
        match target.WhichOneof("target"):
            case "webhook":
                from parley.orchestrator.delivery.channels.webhook import WebhookChannel

                return WebhookChannel(self.sender, self.clock, target.webhook.url, receiver.secrets)
            case "chat":
                from parley.orchestrator.delivery.channels.chat import ChatChannel

                return ChatChannel(self.sender, self.clock, target.chat.url, target.chat.kind)
            case "file":
                from parley.orchestrator.delivery.channels.file import FileChannel

                assert self.folder is not None
                return FileChannel(self.folder, receiver.tenant, target.file.path)
            case "mail":
                from parley.orchestrator.delivery.channels.mail import MailChannel

                assert self.mail is not None
                return MailChannel(self.mail, target.mail.address)
            case _:
                from parley.orchestrator.delivery.channels.stdout import StdoutChannel

                return StdoutChannel()
