"""What the console adds to the edge's paths."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Route

from parley.edge.console.assets import Assets
from parley.edge.console.form_options import answer_options
from parley.edge.console.markdown import answer_markdown
from parley.edge.console.sessions import SignIn

_PAGES: Final = ("/", "/login", "/new", "/agents", "/debates/{debate_id}", "/debates/{debate_id}/result")


def create_routes(sign_in: SignIn) -> Sequence[BaseRoute]:
    """Return the routes of the console. The page's script knows the same addresses (`static/app.js`)."""
    assets = Assets()
    return [
        *(Route(each, assets.answer_page) for each in _PAGES),
        Route("/console/session", sign_in.create_session, methods=["POST"]),
        Route("/console/session", sign_in.delete_session, methods=["DELETE"]),
        Route("/console/ticket", sign_in.create_ticket, methods=["POST"]),
        Route("/console/markdown", answer_markdown, methods=["POST"]),
        Route("/console/options", answer_options),
        Route("/console/{name}", assets.answer_asset),
    ]
