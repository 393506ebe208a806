"""A mail server on loopback: it notes what it is given, and answers as it is told."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Final

_GREETING: Final = b"220 mail.example\r\n"
_CLOSED: Final = (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError)


@dataclass(slots=True)
class MailServer:
    """What it was given.

    Attributes:
        refuses: What it answers to commands instead, by the command's first word.
        recipients: To whom, in order.
        stalls: Whether it says nothing after its greeting.
        delay: Seconds before each answer.
        logins: User and password of those who signed in.
    """

    port: int = 0
    refuses: Mapping[str, str] = field(default_factory=dict)
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    stalls: bool = False
    delay: float = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak SMTP with one client."""
        with suppress(*_CLOSED):
            writer.write(_GREETING)
            while not self.stalls:
                line = (await reader.readuntil(b"\r\n")).decode().strip()
                await asyncio.sleep(self.delay)
                writer.write(f"{await self._answer(line, reader, writer)}\r\n".encode())
            await reader.read()
        writer.close()

    async def _answer(self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        word, _, rest = line.partition(" ")
        if word in self.refuses:
            return self.refuses[word]
        match word:
            case "EHLO":
                return "250-mail.example\r\n250 AUTH PLAIN"
            case "AUTH":
                self.logins.append(base64.b64decode(rest.split()[-1]).decode().replace("\0", " ").strip())
                return "235 welcome"
            case "RCPT":
                self.recipients.append(rest)
            case "DATA":
                writer.write(b"354 go on\r\n")
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(data[:-3], policy=policy.default))
        return "250 ok"


@asynccontextmanager
async def mail_server(context: ssl.SSLContext | None = None) -> AsyncIterator[MailServer]:
    """A server that takes mail while the block runs, over TLS if there is a context."""
    served = MailServer()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=context)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
