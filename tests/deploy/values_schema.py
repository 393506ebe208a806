"""The part of the chart's schema that services decide: which settings there are, as their classes have them.

`python -m tests.deploy.values_schema` writes it anew.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import SecretStr

from tests.deploy.chart import CHART, SETTINGS

SCHEMA: Final = CHART / "values.schema.json"
FROM_VALUES: Final = frozenset(
    {
        "host",
        "port",
        "health_port",
        "log_level",
        "grace_seconds",
        "store",
        "vectors",
        "vectors_ca",
        "advertise",
        "echo",
    }
    | {
        "gateway",
        "convergence",
        "ratings",
        "memory",
        "orchestrator",
        "edge_hosts",
        "edge_teams",
        "agents_file",
        "prices_file",
        "advertise_name",
    }
    | {"auth", "tls", "tls_certificate", "tls_key", "tls_client_ca", "ca", "service_secret_file"}
    | {"receipt_keys", "receipt_revoked", "encryption_keys", "encryption_command", "hook_folder"}
)
"""Settings that the chart makes of other values, or knows itself."""
OF_CALLERS: Final = frozenset({"mtls_rules"})
"""Settings of whoever is called by clients: the chart lets the other services show each other a secret."""
_KEPT: Final = (
    "type",
    "enum",
    "const",
    "pattern",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "description",
)


def variable(service: str, field: str) -> str:
    """The variable that a setting of a service is read from."""
    alias = SETTINGS[service].model_fields[field].validation_alias
    return str(alias).upper() if alias else f"PARLEY_{field.upper()}"


def secrets_of(service: str) -> frozenset[str]:
    """Settings that hold a secret, and so come from a Secret alone."""
    fields = SETTINGS[service].model_fields.items()
    return frozenset(
        name
        for name, field in fields
        if "SecretStr" in str(field.annotation) or field.annotation is SecretStr
    )


def settings_schema(service: str) -> dict[str, Any]:
    """The settings of a service that its values may name, with what each may be."""
    known = SETTINGS[service].model_json_schema(by_alias=False)["properties"]
    left_out = FROM_VALUES | secrets_of(service) | (OF_CALLERS if service != "orchestrator" else set())
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _flatten(part) for name, part in sorted(known.items()) if name not in left_out},
    }


def _flatten(part: Mapping[str, Any]) -> dict[str, Any]:
    (some, *_) = [each for each in part.get("anyOf", [part]) if each.get("type") != "null"]
    return {name: value for name, value in {**part, **some}.items() if name in _KEPT}


def schema_text(text: str) -> str:
    """The schema with the parts of all services as they are now."""
    schema = json.loads(text)
    for service in SETTINGS:
        schema["$defs"][f"{service}Settings"] = settings_schema(service)
    shared = SETTINGS["ratings"].model_json_schema(by_alias=False)["properties"]
    schema["$defs"]["service"]["logLevel"]["enum"] = shared["log_level"]["enum"]
    schema["$defs"]["service"]["graceSeconds"]["maximum"] = shared["grace_seconds"]["maximum"]
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(SCHEMA.read_text()))
