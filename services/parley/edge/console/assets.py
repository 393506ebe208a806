"""The console's files, as they are in the package: no build, and nothing from another site."""

import hashlib
import mimetypes
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

_PAGE: Final = "index.html"
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",  # asked for again each time, and answered by 304 if it is the same
}


class _Asset(Struct, frozen=True):
    content: bytes
    media_type: str
    etag: str


class Assets:
    """The page, its modules and styles, read once."""

    def __init__(self) -> None:
        self._assets = _read_assets()

    async def answer_page(self, request: Request) -> Response:
        """Return the page, which is one for all addresses: its script shows what the address names."""
        return _answer(request, self._assets[_PAGE])

    async def answer_asset(self, request: Request) -> Response:
        """Return a module, a style or a picture."""
        found = self._assets.get(request.path_params["name"])
        if found is None:
            return PlainTextResponse("the console has no such file\n", 404)
        return _answer(request, found)


def _answer(request: Request, asset: _Asset) -> Response:
    headers = {**_HEADERS, "ETag": asset.etag}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, headers=headers, media_type=asset.media_type)


def _read_assets() -> Mapping[str, _Asset]:
    found = {}
    for each in files(__package__).joinpath("static").iterdir():
        content = each.read_bytes()
        media_type = mimetypes.guess_type(each.name)[0] or "application/octet-stream"
        if each.name.endswith(".js"):
            media_type = (
                "text/javascript"  # a machine's own table may say otherwise, and a browser then refuses it
            )
        found[each.name] = _Asset(content, media_type, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found
