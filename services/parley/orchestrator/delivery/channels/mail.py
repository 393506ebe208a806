"""Mail, through the server that the operator names, to addresses in domains that they allow."""

import asyncio
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final
from urllib.parse import unquote, urlsplit

import aiosmtplib
from msgspec import Struct

from parley.orchestrator.delivery.channels.chat_text import fit, split_text
from parley.orchestrator.delivery.channels.mail_server import Mail, domain_of
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.runtime.printable import printable_line

_SECONDS: Final = 15.0
_MAX_SUBJECT: Final = 200
_MAX_REASON: Final = 200
_NO_MAILBOX: Final = frozenset({550, 551, 553})
"""What a server says of an address that nothing can be sent to."""


class MailChannel(Struct, frozen=True):
    """Sends the text of messages to an address. A delivery's `Message-ID` is the same each time, so that many readers show it once."""

    mail: Mail
    address: str

    async def send(self, message: Message) -> None:
        """Send a message. Raise DeliveryError if the server may not have taken it."""
        server = urlsplit(self.mail.server)
        try:
            async with asyncio.timeout(_SECONDS):
                await aiosmtplib.send(
                    self._write(message),
                    hostname=server.hostname,
                    port=server.port,
                    username=unquote(server.username) if server.username else None,
                    password=unquote(server.password) if server.password else None,
                    use_tls=server.scheme == "smtps",
                    start_tls=self.mail.needs_starttls,
                    timeout=_SECONDS,
                )
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise _refuse(error.recipients[0]) from None
        except aiosmtplib.SMTPResponseException as error:
            raise _refuse(error) from None
        except TimeoutError:
            raise DeliveryError(f"the mail server did not answer within {_SECONDS:g} s") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            # Its text may hold what was sent.
            raise DeliveryError(f"the mail server could not be used: {type(error).__name__}") from None

    def _write(self, message: Message) -> EmailMessage:
        title, rest = split_text(message.text)
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self.mail.sender, self.address
        mail["Subject"] = fit(title, _MAX_SUBJECT)
        mail["Date"] = format_datetime(message.time)
        mail["Message-ID"] = f"<{message.id}@{domain_of(self.mail.sender)}>"
        mail["Auto-Submitted"] = "auto-generated"
        links = [f"{shown}: {url}" for shown, url in message.links]
        mail.set_content("\n\n".join(filter(None, (title, rest, *links))) + "\n")
        return mail


def _refuse(error: aiosmtplib.SMTPResponseException) -> DeliveryError:
    said = printable_line(str(error.message))[:_MAX_REASON]
    is_gone = isinstance(error, aiosmtplib.SMTPRecipientRefused) and error.code in _NO_MAILBOX
    return DeliveryError(f"the mail server answered {error.code}: {said}", permanent=is_gone)
