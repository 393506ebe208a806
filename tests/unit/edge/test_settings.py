"""What the edge's settings refuse, by the name of the variable that is to be changed."""

from typing import Any

import pytest
from pydantic import ValidationError

from parley.edge.settings import EdgeSettings

PROVIDER: dict[str, Any] = {
    "auth": "key,jwt",
    "edge_oidc_issuer": "https://login.example",
    "edge_oidc_client_id": "console",
}


def test_a_provider_is_known_by_its_address_and_our_id_there() -> None:
    assert EdgeSettings(**PROVIDER).edge_oidc_token == "access"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"edge_oidc_client_id": ""}, "PARLEY_EDGE_OIDC_CLIENT_ID"),
        ({"auth": "key"}, "PARLEY_AUTH=jwt"),
        ({"edge_oidc_issuer": "http://login.example"}, "must begin with https://"),
        ({"edge_oidc_issuer": "https://ann@login.example"}, "edge_oidc_issuer"),
        ({"edge_oidc_scopes": "profile"}, "edge_oidc_scopes"),
        ({"edge_oidc_token": "refresh"}, "edge_oidc_token"),
    ],
)
def test_a_provider_with_whom_nobody_could_sign_in_is_refused(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        EdgeSettings(**{**PROVIDER, **changed})
