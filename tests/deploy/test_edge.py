"""The edge in the chart: what it is given, the ways in to it, and what is refused."""

import copy
import re
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest

from parley.edge.chat.teams import load_teams
from parley.edge.settings import EdgeSettings
from tests.deploy.chart import EXAMPLES, SETTINGS, Rendered, example, render, values_of

PARENTS = [{"name": "eg", "namespace": "gateways"}]
FROM_ELSEWHERE = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateways"}}}]


def with_edge(name: str = "minimal", clients: Any = FROM_ELSEWHERE, **edge: Any) -> dict[str, Any]:
    values = copy.deepcopy(values_of(name))
    values["edge"] = edge
    values.setdefault("networkPolicy", {})["edgeClients"] = clients
    return values


def with_provider(**more: Any) -> dict[str, Any]:
    """The production example, with other parts of what a provider for the console needs."""
    values = copy.deepcopy(values_of("production"))
    for path, value in more.items():
        *parents, name = path.split("__")
        place = values
        for each in parents:
            place = place[each]
        place[name] = value
    return values


def list_mounts(rendered: Rendered, service: str) -> set[str]:
    pod = rendered.one("Deployment", f"parley-{service}")["spec"]["template"]["spec"]
    return {each["mountPath"] for each in pod["containers"][0]["volumeMounts"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_edge_starts_with_what_it_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, value in example(name).variables("edge").items():
        monkeypatch.setenv(variable, value)
    settings = EdgeSettings.load()
    assert settings.orchestrator == "parley-orchestrator:7401"
    assert {"parley-http", "parley-http.debates.svc", "parley-edge", "localhost"} <= set(settings.hosts)
    assert settings.health_port != settings.port


def test_it_signs_nothing_and_so_has_no_secret_of_services_and_no_store() -> None:
    rendered = example("production")
    assert list_mounts(rendered, "edge") == {"/tmp", "/etc/parley/tls", "/etc/parley/teams"}
    assert "/etc/parley/secret" in list_mounts(rendered, "memory")
    assert not {"PARLEY_SERVICE_SECRET_FILE", "PARLEY_STORE"} & rendered.variables("edge").keys()


def test_clients_without_a_certificate_reach_it() -> None:
    assert "PARLEY_TLS_CLIENT_CA" not in example("production").variables("edge")


def test_an_ingress_leads_every_host_to_the_one_address_and_the_edge_knows_its_name() -> None:
    rendered = example("production")
    spec = rendered.one("Ingress", "parley-http")["spec"]
    assert spec["tls"] == [{"secretName": "parley-example-org", "hosts": ["parley.example.org"]}]
    (rule,) = spec["rules"]
    assert rule["host"] == "parley.example.org"
    (path,) = rule["http"]["paths"]
    backend = path["backend"]["service"]
    service = rendered.one("Service", backend["name"])["spec"]
    assert backend["port"]["name"] in {each["name"] for each in service["ports"]}
    assert "clusterIP" not in service, "one address"
    assert "parley.example.org" in rendered.variables("edge")["PARLEY_EDGE_HOSTS"].split(",")


def test_the_proxies_of_an_ingress_are_let_in_to_the_edge_and_to_nothing_else() -> None:
    rendered = example("production")
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    let_in = {
        service
        for service in SETTINGS
        for rule in rendered.one("NetworkPolicy", f"parley-{service}")["spec"]["ingress"]
        if peer in rule["from"]
    }
    assert let_in == {"edge"}


def test_a_route_of_the_gateway_api_leads_there_and_ends_no_stream() -> None:
    route = {"enabled": True, "parentRefs": PARENTS, "labels": {"team": "platform"}}
    rendered = render(with_edge(hosts=["a.example.org"], route=route))
    made = rendered.one("HTTPRoute", "parley-http")
    assert made["metadata"]["labels"]["team"] == "platform"
    assert made["spec"]["hostnames"] == ["a.example.org"]
    (rule,) = made["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": "parley-http", "port": 7400}]
    assert rule["timeouts"] == {"request": "0s"}


def test_its_certificate_has_the_names_by_which_it_is_reached() -> None:
    def names(values: dict[str, Any]) -> set[str]:
        return set(render(values).one("Certificate", "parley-edge")["spec"]["dnsNames"])

    inside = {"parley-edge", "parley-http.debates.svc", "parley-http.debates.svc.cluster.local", "localhost"}
    assert inside <= names(with_edge(hosts=["a.example.org"]))
    assert "a.example.org" not in names(with_edge(hosts=["a.example.org"])), "a proxy ends TLS there"
    balanced = with_edge(hosts=["a.example.org"], service={"type": "LoadBalancer"})
    assert inside | {"a.example.org"} <= names(balanced)
    assert render(balanced).one("Service", "parley-http")["spec"]["type"] == "LoadBalancer"


def test_its_metrics_have_no_port_at_the_address_for_clients() -> None:
    values = with_edge()
    values["metrics"] = {"enabled": True}
    values["networkPolicy"]["metricsClients"] = FROM_ELSEWHERE
    rendered = render(values)
    ports = {
        name: {each["name"] for each in rendered.one("Service", name)["spec"]["ports"]}
        for name in ("parley-edge", "parley-http")
    }
    assert ports == {"parley-edge": {"http", "metrics"}, "parley-http": {"http"}}


def test_teams_are_models_of_the_edge_that_runs_and_a_change_starts_it_anew(tmp_path: Path) -> None:
    rendered = example("production")
    teams = rendered.one("ConfigMap", "parley-edge-teams")["data"]
    for name, text in teams.items():
        (tmp_path / name).write_text(text)
    assert [each.name for each in load_teams(tmp_path)] == ["review"]
    deployment = rendered.one("Deployment", "parley-edge")["spec"]["template"]
    (volume,) = [each for each in deployment["spec"]["volumes"] if each["name"] == "teams"]
    assert volume["configMap"]["name"] == "parley-edge-teams"
    assert rendered.variables("edge")["PARLEY_EDGE_TEAMS"] in list_mounts(rendered, "edge")
    other = render(with_provider(edge__teams={"review.yaml": "debate: {rounds: 1}"}))
    changed = other.one("Deployment", "parley-edge")["spec"]["template"]["metadata"]["annotations"]
    assert changed["checksum/teams"] != deployment["metadata"]["annotations"]["checksum/teams"]
    assert "PARLEY_EDGE_TEAMS" not in example("minimal").variables("edge")


def test_it_reaches_the_provider_at_which_people_sign_in_by_the_proxy_if_there_is_one() -> None:
    proxy = {"url": "http://proxy.example.org:443"}
    rendered = render(with_provider(proxy=proxy))
    assert rendered.variables("edge")["HTTPS_PROXY"] == proxy["url"]
    egress = rendered.one("NetworkPolicy", "parley-edge")["spec"]["egress"]
    assert values_of("production")["networkPolicy"]["edgeEgress"][0] in egress
    values = with_edge()
    values["proxy"] = proxy
    assert "HTTPS_PROXY" not in render(values).variables("edge")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"services__edge__existingSecret": ""}, "services.edge.existingSecret is empty"),
        ({"networkPolicy__edgeEgress": []}, "networkPolicy.edgeEgress does not name port 443"),
        ({"services__edge__settings__edge_oidc_issuer": "https://login:8443"}, "networkPolicy.edgeEgress"),
        ({"access__clients": ["key"]}, "access.clients has no jwt"),
        ({"edge__teams": {"Review.yaml": "x"}}, "teams"),
    ],
)
def test_a_sign_in_that_would_not_work_is_refused_by_its_name(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(told)):
        render(with_provider(**changed))


def test_a_single_pod_needs_no_secret_for_sessions() -> None:
    values = with_provider(services__edge__existingSecret="", services__edge__autoscaling={"enabled": False})
    values["services"]["edge"]["replicas"] = 1
    assert render(values).objects


def test_there_is_none_where_it_is_switched_off() -> None:
    rendered = render(with_edge(enabled=False))
    of_edge = [each for each in rendered.objects if "edge" in str(each) or "parley-http" in str(each)]
    assert of_edge == []
    assert "7400" not in rendered.notes


def test_kubernetes_takes_the_objects() -> None:
    values = with_edge(hosts=["*.example.org"], ingress={"enabled": True, "annotations": {"a/b": "c"}})
    for each in render(values).objects:
        if each["kind"] in {"Ingress", "Service", "Deployment", "NetworkPolicy"}:
            kubernetes_validate.validate(each, "1.37", strict=True)


@pytest.mark.parametrize(
    ("edge", "told"),
    [
        ({"ingress": {"enabled": True}}, "edge.hosts is empty"),
        ({"service": {"type": "LoadBalancer"}}, "edge.hosts is empty"),
        ({"hosts": ["a.example.org"], "route": {"enabled": True}}, "edge.route.parentRefs is empty"),
        (
            {"enabled": False, "hosts": ["a.example.org"], "ingress": {"enabled": True}},
            "edge.enabled is false",
        ),
        (
            {"hosts": ["a.example.org"], "ingress": {"enabled": True}, "clients": [{"podSelector": {}}]},
            "networkPolicy.edgeClients has no namespaceSelector",
        ),
        ({"hosts": ["https://a.example.org"]}, "hosts"),
        ({"clients": []}, "edgeClients"),
    ],
)
def test_what_contradicts_itself_is_refused_by_its_name(edge: dict[str, Any], told: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(told)):
        render(with_edge(**edge))


def test_an_edge_is_refused_where_callers_are_known_by_certificates_since_its_own_would_speak_for_all() -> (
    None
):
    values = with_edge()
    values["access"]["clients"] = ["key", "mtls"]
    rules = [{"subject": "uri:spiffe://a/*", "tenant": "a", "roles": ["debate"]}]
    values["services"]["orchestrator"] = {"settings": {"mtls_rules": rules}}
    with pytest.raises(
        helm_python.HelmError, match=re.escape("edge.enabled is true, but access.clients has mtls")
    ):
        render(values)
    values["edge"]["enabled"] = False
    assert render(values).objects
