"""An OpenID Connect issuer on loopback: it describes itself, tells its keys, and signs what a test wants."""

import json
import time
from typing import Any, Self

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa

AUDIENCE = "parley"


class TokenIssuer:
    """Attributes: `asked`, how often its keys were asked for; `away`, whether it answers with an error instead; `tells_private_keys`, whether it publishes what it signs with."""

    def __init__(self) -> None:
        self.asked = 0
        self.away = False
        self.tells_private_keys = False
        self.url = ""
        self._keys: dict[str, Any] = {}
        self.add_key("first")

    async def __aenter__(self) -> Self:
        app = web.Application()
        self.add_routes(app.router)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        """Say what it answers."""
        router.add_get("/.well-known/openid-configuration", self._describe)
        router.add_get("/keys", self._tell)

    def description(self) -> dict[str, Any]:
        """What it says of itself."""
        return {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def add_key(self, key_id: str, kind: str = "RS256") -> None:
        make = (
            (lambda: rsa.generate_private_key(65537, 2048))
            if kind == "RS256"
            else (lambda: ec.generate_private_key(ec.SECP256R1()))
        )
        self._keys[key_id] = (kind, make())

    def withdraw_key(self, key_id: str) -> None:
        del self._keys[key_id]

    def sign(self, key_id: str = "first", *, lasts: float = 60.0, **claims: Any) -> str:
        """A token that is right in all, but for the claims that are given; None leaves one out."""
        kind, key = self._keys[key_id]
        whole = {
            "iss": self.url,
            "aud": AUDIENCE,
            "sub": "ann@acme.example",
            "exp": time.time() + lasts,
            "tenant": "acme",
            "roles": ["debate"],
            **claims,
        }
        present = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(present, key, algorithm=kind, headers={"kid": key_id})

    def public_pem(self) -> bytes:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public: bytes = (
            self._keys["first"][1].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        return public

    async def _describe(self, _request: web.Request) -> web.Response:
        return web.json_response(self.description())

    async def _tell(self, _request: web.Request) -> web.Response:
        self.asked += 1
        if self.away:
            raise web.HTTPServiceUnavailable
        algorithms = jwt.get_algorithm_by_name
        told = [
            {
                **json.loads(algorithms(kind).to_jwk(key if self.tells_private_keys else key.public_key())),
                "kid": key_id,
                "key_ops": ["verify"],
                "use": "sig",
                "alg": kind,
            }
            for key_id, (kind, key) in self._keys.items()
        ]
        return web.json_response({"keys": told})
