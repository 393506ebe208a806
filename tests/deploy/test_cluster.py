"""The local cluster: what is installed there keeps to the same rules, and fits the chart."""

from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from tests.deploy.chart import ROOT, Object, render

FOLDER = ROOT / "k8s"
FILES = sorted((FOLDER / "dependencies").glob("*.yaml"))


@cache
def objects(file: Path) -> tuple[Object, ...]:
    return tuple(yaml.safe_load_all(file.read_text()))


def list_objects() -> list[Object]:
    return [each for file in FILES for each in objects(file)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_every_object_is_one_that_kubernetes_knows(file: Path) -> None:
    for each in objects(file):
        kubernetes_validate.validate(each, "1.37", strict=True)


def test_no_pod_runs_as_root_without_limits_or_with_a_token() -> None:
    for each in list_objects():
        if each["kind"] not in {"Deployment", "StatefulSet"}:
            continue
        name, pod = each["metadata"]["name"], each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["automountServiceAccountToken"] is False, name
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"], name
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name
            assert container["resources"]["limits"]["memory"], name
            assert container["readinessProbe"], name
            assert not container["image"].endswith(":latest"), name
            assert ":" in container["image"], name


def test_a_volume_is_of_a_config_map_that_is_made() -> None:
    made = {each["metadata"]["name"] for each in list_objects() if each["kind"] == "ConfigMap"}
    makefile = (ROOT / "Makefile").read_text()
    for each in list_objects():
        for volume in (
            each["spec"].get("template", {}).get("spec", {}).get("volumes", ()) if "spec" in each else ()
        ):
            if "configMap" in volume:
                name = volume["configMap"]["name"]
                assert name in made or f"create configmap {name} " in makefile


def test_the_values_of_the_cluster_name_services_that_are_there() -> None:
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    render(values)
    there = {
        (f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc", port["port"])
        for each in list_objects()
        if each["kind"] == "Service"
        for port in each["spec"]["ports"]
    }
    for url in (values["vectors"]["url"], values["telemetry"]["endpoint"]):
        assert (urlsplit(url).hostname, urlsplit(url).port) in there


def test_the_gateway_may_call_the_orchestrator_and_ends_no_stream_that_lasts() -> None:
    rendered = render(yaml.safe_load((FOLDER / "values.yaml").read_text()))
    (ingress,) = rendered.one("NetworkPolicy", "parley-orchestrator")["spec"]["ingress"]
    namespaces = [each["namespaceSelector"] for each in ingress["from"] if "namespaceSelector" in each]
    assert namespaces == [{"matchLabels": {"kubernetes.io/metadata.name": "envoy-gateway-system"}}]
    policy = yaml.safe_load((FOLDER / "gateway" / "envoy-streams.yaml").read_text())
    routes = yaml.safe_load_all((FOLDER / "gateway" / "grpcroute.yaml").read_text())
    (route,) = [each["metadata"] for each in routes if each["kind"] == "GRPCRoute"]
    (target,) = policy["spec"]["targetRefs"]
    assert (target["name"], policy["metadata"]["namespace"]) == (route["name"], route["namespace"])
    assert policy["spec"]["timeout"]["http"]["requestTimeout"] == "0s"


def test_the_route_from_outside_leads_to_the_orchestrator_alone() -> None:
    (route,) = [
        each
        for each in yaml.safe_load_all((FOLDER / "gateway" / "grpcroute.yaml").read_text())
        if each["kind"] == "GRPCRoute"
    ]
    (rule,) = route["spec"]["rules"]
    assert rule["matches"] == [{"method": {"service": "parley.v1.OrchestratorService"}}]
    (backend,) = rule["backendRefs"]
    service = render(yaml.safe_load((FOLDER / "values.yaml").read_text())).one("Service", backend["name"])
    assert backend["port"] in [port["port"] for port in service["spec"]["ports"]]
