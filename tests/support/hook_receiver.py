"""A receiver of webhooks, as the guide on hooks shows it: it verifies with the public library and knows nothing of Parley."""

import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ.get("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
seen: dict[str, Any] = {}


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            self.send_response(401)
        else:
            seen.setdefault(event["id"], event)  # the same id may come again
            self.send_response(204)
        self.end_headers()


def serve(host: str = "127.0.0.1", port: int = 8080) -> None:
    ThreadingHTTPServer((host, port), Receiver).serve_forever()
