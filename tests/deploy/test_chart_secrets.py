"""Keys and authorities reach the services of the chart that need them, as files of secrets, and no other."""

import re
from typing import Any

import helm_python
import pytest

from tests.deploy.changed_values import change_value
from tests.deploy.chart import (
    SETTINGS,
    Rendered,
    example,
    render,
)


@pytest.mark.parametrize(
    ("vectors", "named"),
    [
        ({"existingSecret": "parley-vectors"}, "vectors.existingSecret is set, but vectors.url is not https"),
        ({"ca": {"existingSecret": "parley-vectors"}}, "vectors.ca.existingSecret is set, but vectors.url"),
    ],
)
def test_a_key_and_an_authority_are_refused_for_a_qdrant_without_tls(
    vectors: dict[str, Any], named: str
) -> None:
    values = change_value("vectors", {"url": "http://qdrant.databases.svc:6334", **vectors})
    with pytest.raises(helm_python.HelmError, match=re.escape(named)):
        render(values)


def test_a_key_goes_to_a_qdrant_without_tls_if_pods_speak_in_the_clear() -> None:
    values = change_value(
        "vectors", {"url": "http://qdrant.databases.svc:6334", "existingSecret": "parley-vectors"}
    )
    values["tls"] = {"enabled": False, "inTheClear": True}
    assert "PARLEY_VECTORS_API_KEY" in render(values).variables("memory")


def test_memory_alone_gets_the_key_of_qdrant_from_its_secret_and_its_authority_as_a_file() -> None:
    rendered = example("production")
    for service in SETTINGS:
        assert ("PARLEY_VECTORS_API_KEY" in rendered.variables(service)) == (service == "memory")
    pod = rendered.one("Deployment", "parley-memory")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (key,) = (each for each in container["env"] if each["name"] == "PARLEY_VECTORS_API_KEY")
    assert key["valueFrom"] == {"secretKeyRef": {"name": "parley-vectors", "key": "api-key"}}
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "vectors")
    (volume,) = (each for each in pod["volumes"] if each["name"] == "vectors")
    (item,) = volume["secret"]["items"]
    assert volume["secret"]["secretName"] == "parley-vectors"
    assert rendered.variables("memory")["PARLEY_VECTORS_CA"] == f"{mount['mountPath']}/{item['path']}"


def test_a_key_is_a_file_of_the_secret_and_the_program_of_the_word_command_reaches_its_key_service() -> None:
    values = change_value("encryption.keys", ["2026-11", "command"])
    values["encryption"]["command"] = "kms-wrap --key parley"
    way = {"to": [{"ipBlock": {"cidr": "10.7.0.0/16"}}], "ports": [{"port": 443}]}
    values["networkPolicy"]["encryptionEgress"] = [way]
    rendered = render(values)
    storing = {each for each in SETTINGS if "PARLEY_ENCRYPTION_KEYS" in rendered.variables(each)}
    assert storing == {"orchestrator", "gateway", "ratings", "memory"}
    for each in SETTINGS:
        given, egress = (
            rendered.variables(each),
            rendered.one("NetworkPolicy", f"parley-{each}")["spec"]["egress"],
        )
        assert (way in egress) == (each in storing)
        assert given.get("PARLEY_ENCRYPTION_COMMAND") == (
            "kms-wrap --key parley" if each in storing else None
        )
    assert get_keys(rendered) == "/etc/parley/encryption/2026-11,command"
    values["encryption"] = {"command": "kms-wrap"}
    assert get_keys(render(values)) is None


def get_keys(rendered: Rendered) -> str | None:
    return rendered.variables("ratings").get("PARLEY_ENCRYPTION_KEYS")


def test_services_with_a_store_have_the_file_of_its_authority() -> None:
    rendered = render(change_value("store.ca.existingSecret", "mongodb-ca"))
    found = {
        service
        for service in SETTINGS
        for each in rendered.one("Deployment", f"parley-{service}")["spec"]["template"]["spec"]["volumes"]
        if each.get("secret", {}).get("secretName") == "mongodb-ca"
    }
    assert found == {"orchestrator", "gateway", "ratings", "memory"}
    pod = dict(rendered.pods())["Deployment/parley-ratings"]
    assert {"name": "store", "mountPath": "/etc/parley/store", "readOnly": True} in pod["containers"][0][
        "volumeMounts"
    ]
