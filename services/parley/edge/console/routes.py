"""What the console adds to the edge's paths."""

from collections.abc import Sequence
from typing import Final

from starlette.routing import BaseRoute, Route

from parley.edge.calls import OrchestratorCalls
from parley.edge.console.assets import Assets
from parley.edge.console.form_options import answer_options
from parley.edge.console.markdown import answer_markdown
from parley.edge.console.seals import Seal
from parley.edge.console.sessions import Sessions
from parley.edge.console.sign_in import SignIn
from parley.edge.settings import EdgeSettings

_PAGES: Final = (
    *("/", "/login", "/new", "/agents", "/memory", "/memory/{debate_id}"),
    *("/debates/{debate_id}", "/debates/{debate_id}/result"),
)


def create_routes(
    settings: EdgeSettings, seal: Seal, sessions: Sessions, calls: OrchestratorCalls
) -> Sequence[BaseRoute]:
    """Return the routes of the console. The page's script knows the same addresses (`static/app.js`)."""
    assets = Assets()
    return [
        *(Route(each, assets.answer_page) for each in _PAGES),
        *SignIn(sessions, calls).create_routes(),
        *_create_provider_routes(settings, seal, sessions, calls),
        Route("/console/markdown", answer_markdown, methods=["POST"]),
        Route("/console/options", answer_options),
        Route("/console/{name}", assets.answer_asset),
    ]


def _create_provider_routes(
    settings: EdgeSettings, seal: Seal, sessions: Sessions, calls: OrchestratorCalls
) -> Sequence[BaseRoute]:
    if not settings.edge_oidc_issuer:
        return []
    from parley.edge.console.provider import Provider, ProviderSettings
    from parley.edge.console.provider_sign_in import ProviderSignIn

    provider = Provider(
        ProviderSettings(
            issuer=settings.edge_oidc_issuer,
            client_id=settings.edge_oidc_client_id,
            client_secret=settings.edge_oidc_client_secret.get_secret_value(),
            scopes=settings.edge_oidc_scopes,
            token=settings.edge_oidc_token,
        )
    )
    return ProviderSignIn(provider, settings.edge_oidc_issuer, seal, sessions, calls).create_routes()
