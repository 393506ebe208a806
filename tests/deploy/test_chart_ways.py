"""Ways into the pods of the chart and out of them: what is let in, by which route, and what is asked by a proxy."""

import re

import helm_python
import pytest

from tests.deploy.changed_values import change_value
from tests.deploy.chart import (
    SETTINGS,
    render,
    values_of,
)


def test_a_model_in_the_cluster_is_reached_once_a_rule_lets_the_gateway_out_to_pods() -> None:
    agents = "providers: [{name: vllm, base_url: 'http://vllm.models.svc.cluster.local/v1'}]"
    values = change_value("gateway.agents", agents)
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "models"}}}
    values["networkPolicy"]["providers"] = [{"to": [peer], "ports": [{"port": 8000}]}]
    assert render(values).objects


def test_callers_from_outside_are_let_in_by_their_addresses_where_the_service_has_one_of_its_own() -> None:
    values = change_value(
        "service", {"type": "LoadBalancer", "annotations": {"example.org/internal": "true"}}
    )
    values["networkPolicy"]["clients"] = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    values["service"]["externalTrafficPolicy"] = "Local"
    service = render(values).one("Service", "parley")
    assert (service["spec"]["type"], service["spec"]["externalTrafficPolicy"]) == ("LoadBalancer", "Local")
    assert service["metadata"]["annotations"] == {"example.org/internal": "true"}


def test_a_route_leads_to_the_orchestrator_alone() -> None:
    values = change_value(
        "route",
        {
            "enabled": True,
            "parentRefs": [{"name": "eg", "namespace": "gateways"}],
            "hostnames": ["a.example.org"],
        },
    )
    spec = render(values).one("GRPCRoute", "parley")["spec"]
    assert spec["hostnames"] == ["a.example.org"]
    (rule,) = spec["rules"]
    assert rule["matches"] == [{"method": {"service": "parley.v1.OrchestratorService"}}]
    assert rule["backendRefs"] == [{"name": "parley", "port": 7401}]


def test_a_route_whose_gateway_is_not_let_in_is_refused() -> None:
    values = change_value("route", {"enabled": True, "parentRefs": [{"name": "eg"}]}, "minimal")
    with pytest.raises(
        helm_python.HelmError, match=re.escape("networkPolicy.clients has no namespaceSelector")
    ):
        render(values)


def test_proxies_of_a_gateway_in_the_same_namespace_are_let_in_by_their_labels() -> None:
    values = change_value("route", {"enabled": True, "parentRefs": [{"name": "eg"}]}, "minimal")
    proxies = {"podSelector": {"matchLabels": {"gateway.networking.k8s.io/gateway-name": "eg"}}}
    values["networkPolicy"] = {"clients": [proxies], "edgeClients": [proxies]}
    values["edge"] = {**values.get("edge", {}), "hosts": ["a.example.org"], "route": values["route"]}
    text = render(values).text
    assert text.count("gateway-name: eg") == 2


def test_pods_listen_and_are_reached_by_ipv6() -> None:
    rendered = render(change_value("listen", "::"))
    assert {rendered.variables(each)["PARLEY_HOST"] for each in SETTINGS} == {"::"}
    (container,) = rendered.one("Deployment", "parley-orchestrator")["spec"]["template"]["spec"]["containers"]
    (advertise,) = (each for each in container["env"] if each["name"] == "PARLEY_ADVERTISE")
    assert advertise["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    stores = dict(render({**values_of("dev"), "listen": "::"}).containers())
    assert "--ipv6" in stores["StatefulSet/parley-mongodb/mongodb"]["args"]
    assert {"name": "QDRANT__SERVICE__HOST", "value": "::"} in stores["StatefulSet/parley-qdrant/qdrant"][
        "env"
    ]


@pytest.mark.parametrize("setting", ["hook_hosts", "research_pages"])
def test_what_nobody_lets_out_is_refused(setting: str) -> None:
    values = change_value(
        f"services.orchestrator.settings.{setting}",
        {"hook_hosts": "a.example.org"}.get(setting, True),
        "minimal",
    )
    with pytest.raises(
        helm_python.HelmError, match=f"{setting} is set, but networkPolicy.orchestratorEgress"
    ):
        render(values)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        (
            "models.example.org",
            "proxy.url is http://proxy.example.org:3128, but networkPolicy.providers does not",
        ),
        ("vllm.models.svc", "http://vllm.models.svc/v1, but networkPolicy.providers lets no pods be reached"),
        ("vllm", "http://vllm/v1, and the proxy of proxy.url would be asked for it"),
        ("vllm.house", "http://vllm.house/v1, but networkPolicy.providers does not name port 80"),
    ],
)
def test_a_way_out_is_looked_for_to_the_proxy_or_past_it_as_each_host_is_asked(host: str, told: str) -> None:
    values = change_value(
        "gateway.agents", f"providers: [{{name: house, base_url: 'http://{host}/v1'}}]", "minimal"
    )
    values["proxy"] = {"url": "http://proxy.example.org:3128", "except": ".house"}
    with pytest.raises(helm_python.HelmError, match=re.escape(told)):
        render(values)


def test_what_is_outside_the_cluster_is_asked_by_the_proxy_and_what_is_within_is_not() -> None:
    values = change_value(
        "proxy", {"url": "http://proxy.example.org:443", "except": "10.0.0.0/8,.house.example"}
    )
    values["telemetry"]["endpoint"] = "http://otel:4317"
    rendered = render(values)
    for service in ("orchestrator", "gateway", "convergence"):
        given = rendered.variables(service)
        assert given["HTTPS_PROXY"] == given["HTTP_PROXY"] == "http://proxy.example.org:443"
        assert (
            given["NO_PROXY"] == "localhost,127.0.0.1,::1,.svc,.cluster.local,otel,10.0.0.0/8,.house.example"
        )
    assert "HTTPS_PROXY" not in rendered.variables("ratings")
