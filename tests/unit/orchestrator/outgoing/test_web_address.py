"""What is an address, as far as one sees by it."""

import pytest

from parley.orchestrator.outgoing.web_address import is_http_url


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        ("https://api.github.com/repos/o/r/issues", True),
        ("http://[::1]:8080/x?y=z", True),
        ("ftp://a.b", False),
        ("https://", False),
        ("https://a b", False),
        ("https://u@a.b", False),
        ("https://a.b:99999", False),
        ("//a.b", False),
    ],
)
def test_a_url_is_http_with_a_host(url: str, is_one: bool) -> None:
    assert is_http_url(url) == is_one
