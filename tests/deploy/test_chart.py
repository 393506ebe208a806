"""The chart renders, for every example, what Kubernetes takes and what was looked at last time."""

import copy
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml

from parley.cli.app import parley
from tests.deploy.chart import (
    CHART,
    EXAMPLES,
    ROOT,
    SETTINGS,
    Rendered,
    example,
    example_file,
    render,
    values_of,
)
from tests.deploy.values_schema import SCHEMA, schema_text
from tests.support.release import list_chart_files, pack

KUBERNETES = [("minimal", "1.37"), ("production", "1.37"), ("dev", "1.37"), ("production", "1.30")]
"""The newest whose schemas are known here, and the oldest that the chart is for."""
_NOT_KUBERNETES = {"Certificate", "GRPCRoute", "HTTPRoute", "PrometheusRule"}
"""Kinds of others, which have no schema here."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_helm_has_nothing_to_say_against_it(name: str) -> None:
    found = helm_python.lint(CHART, values_of(name))
    said = [each["error"] for each in found["messages"] if each["error"] != "icon is recommended"]
    assert (said, found["errors"]) == ([], [])


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_renders_what_was_looked_at_last_time(name: str) -> None:
    kept = CHART / "examples" / name / "rendered.yaml"
    now = example(name).text
    assert kept.read_text() == now, "look at the difference, then: python -m tests.deploy.rendered_examples"


def test_without_helm_a_file_of_values_is_rendered_and_a_wrong_one_refused_in_a_line(tmp_path: Path) -> None:
    def show(file: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.deploy.chart", str(file)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert show(example_file("minimal")).stdout == example("minimal").text
    wrong = tmp_path / "values.yaml"
    wrong.write_text("store: {}\n")
    refused = show(wrong)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert "store.existingSecret is empty" in refused.stderr


def test_the_package_of_a_release_renders_what_the_chart_does(tmp_path: Path) -> None:
    pack(tmp_path / "parley.tgz", CHART, list_chart_files(CHART), 315532800)
    values, rendered = values_of("minimal"), []
    for chart in (CHART, tmp_path / "parley.tgz"):
        with helm_python.Chart.load(chart) as loaded:
            loaded.validate_schema(dict(values))
            rendered.append(loaded.render(dict(values), name="parley", namespace="debates"))
    assert rendered[0] == rendered[1]


@pytest.mark.parametrize(("name", "version"), KUBERNETES)
def test_every_object_is_one_that_kubernetes_knows(name: str, version: str) -> None:
    for each in example(name).objects:
        if each["kind"] not in _NOT_KUBERNETES:
            kubernetes_validate.validate(each, version, strict=True)


def test_every_object_says_what_it_belongs_to_and_has_a_name_of_its_own() -> None:
    for name in EXAMPLES:
        objects = example(name).objects
        names = [(each["kind"], each["metadata"]["name"]) for each in objects]
        assert len(names) == len(set(names))
        for each in objects:
            assert each["metadata"]["namespace"] == "debates"
            assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "parley"


def test_the_schema_names_the_settings_that_services_have_now() -> None:
    text = SCHEMA.read_text()
    assert text == schema_text(text), "run: python -m tests.deploy.values_schema"


def test_the_schema_names_every_value_of_the_chart_and_no_other() -> None:
    def compare(value: Any, schema: dict[str, Any], path: str) -> None:
        if "$ref" in schema:
            schema = follow(schema["$ref"])
        if schema.get("additionalProperties") is False:
            assert set(value) <= set(schema.get("properties", ())), path
            for name, part in value.items():
                compare(part, schema["properties"][name], f"{path}.{name}")

    def follow(reference: str) -> dict[str, Any]:
        part: Any = whole
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]
        return dict(part)

    whole = yaml.safe_load(SCHEMA.read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(whole["properties"]) - {"global"}
    assert set(values["defaults"]) == set(whole["properties"]["defaults"]["properties"])
    assert set(values["services"]) == set(SETTINGS)
    compare(values, whole, "values")


def changed(path: str, value: Any, name: str = "production") -> dict[str, Any]:
    values = copy.deepcopy(values_of(name))
    part = values
    *parents, last = path.split(".")
    for each in parents:
        part = part.setdefault(each, {})
    part[last] = value
    return values


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("store.existingSecret", ""),
        ("mongodb.enabled", True),
        ("vectors.url", ""),
        ("qdrant.enabled", True),
        ("telemetry.endpoint", ""),
        ("services.orchestrator.autoscaling.minReplicas", 50),
        ("services.gateway.autoscaling.debates", 3),
        ("services.gateway.resources", {"limits": {"memory": ""}}),
        ("services.gateway.resources", {"requests": {"cpu": ""}}),
        ("image.tag", "latest"),
        ("image.pullPolicy", "Sometimes"),
        ("vectors.url", "qdrant:6334"),
        ("services.orchestrator.settings.max_debates", 0),
        ("services.orchestrator.settings.max_debate", 10),
        ("services.convergence.digest", "sha256:12"),
        ("defaults.preStopSeconds", 0),
        ("mongodb.image", "mongo"),
        ("telemetry.protocol", "http"),
        ("access.open", True),
        ("access.clients", []),
        ("access.clients", ["password"]),
        ("access.clients", ["mtls"]),
        ("access.serviceSecret.existingSecret", ""),
        ("services.orchestrator.settings.jwt_issuer", ""),
        ("tls.enabled", False),
        ("tls.inTheClear", True),
        ("tls.issuerRef.name", ""),
        ("trial.enabled", True),
        ("replicas", 3),
        ("networkPolicy.storePorts", []),
        ("networkPolicy.telemetryPorts", []),
        ("networkPolicy.telemetryPorts", [4318]),
        ("networkPolicy.orchestratorEgress", []),
        ("encryption.existingSecret", ""),
        ("encryption.keys", []),
        ("encryption.keys", ["command"]),
        ("encryption.keys", ["2026-11", "command"]),
        ("receipts.existingSecret", ""),
        ("receipts.keys", []),
        ("receipts", {"revoked": ["A" * 43]}),
        ("services.orchestrator.settings.mtls_rules", [{"subject": "cn:a", "roles": ["read"]}]),
        ("services.memory.settings", {"mtls_rules": []}),
        ("services.orchestrator.settings.jwt_keys_url", "https://login.example.org:8443/keys"),
        ("services.orchestrator.settings.research_search", "http://searxng.search.svc:8080"),
        ("services.orchestrator.settings.research_feeds", "https://a.example.org/feed,http://b.example.org/"),
        ("networkPolicy.providers", []),
        ("vectors.url", "https://qdrant.databases.svc:7000"),
        ("vectors.url", "https://qdrant.databases.svc"),
        ("vectors.url", "http://qdrant.databases.svc:6334"),
        ("vectors.existingSecret", "Parley_Vectors"),
        ("services.gateway.settings.openai_base_url", "http://vllm.models.svc:8000/v1"),
        ("services.convergence.settings.embedding_base_url", "https://embeddings.example.org/v1"),
        ("services.orchestrator.settings.max_debates", 16),
        ("tls.duration", "720h"),
        ("tls.renewBefore", "2160h"),
        ("services.gateway.settings.openai_base_url", "http://vllm:443/v1"),
        ("gateway.agents", "providers: [{name: vllm, base_url: 'http://vllm.models.svc:8000/v1'}]"),
        ("gateway.agents", "providers: [{name: house, base_url: 'https://models.example.org:8443/v1'}]"),
        ("gateway.agents", "providers: [{name: house]"),
        ("proxy.url", "http://proxy.example.org:3128"),
        ("image.registry", ""),
        ("service.type", "LoadBalancer"),
        ("route.parentRefs", []),
        ("services.memory.serviceAccount", {"create": False}),
        ("listen", "127.0.0.1"),
        ("podUser", 0),
        ("defaults.extraEnv", [{"value": "x"}]),
        ("fullnameOverride", "parley.prod"),
        ("nameOverride", "1parley"),
        ("defaults.podLabels", {"app.kubernetes.io/name": "other"}),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(path: str, value: Any) -> None:
    values = changed(path, value)
    values.setdefault("route", {}).setdefault("enabled", path.startswith("route."))
    with pytest.raises(helm_python.HelmError) as refused:
        render(values)
    named = path.rpartition(".")[2] if not isinstance(value, dict) else next(iter(value))
    assert named in str(refused.value)


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
    values = changed("vectors", {"url": "http://qdrant.databases.svc:6334", **vectors})
    with pytest.raises(helm_python.HelmError, match=re.escape(named)):
        render(values)


def test_a_key_goes_to_a_qdrant_without_tls_if_pods_speak_in_the_clear() -> None:
    values = changed(
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


def test_the_orchestrator_alone_writes_files_of_hooks_into_the_claim_that_is_named() -> None:
    rendered = example("production")
    for service in SETTINGS:
        pod = rendered.one("Deployment", f"parley-{service}")["spec"]["template"]["spec"]
        mounts = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] == "hook-files"]
        claims = [each["persistentVolumeClaim"] for each in pod["volumes"] if each["name"] == "hook-files"]
        folders = [{"name": "hook-files", "mountPath": rendered.variables(service).get("PARLEY_HOOK_FOLDER")}]
        is_writer = service == "orchestrator"
        assert mounts == (folders if is_writer else [])
        assert claims == ([{"claimName": "parley-hook-files"}] if is_writer else [])


def test_files_of_hooks_have_room_in_the_pod_or_in_a_claim_and_not_in_both() -> None:
    rendered = render(changed("hookFiles", {"existingClaim": "", "emptyDirSize": "64Mi"}))
    pod = rendered.one("Deployment", "parley-orchestrator")["spec"]["template"]["spec"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "hook-files")
    assert volume["emptyDir"] == {"sizeLimit": "64Mi"}
    with pytest.raises(helm_python.HelmError, match="both set"):
        render(changed("hookFiles", {"existingClaim": "hooks", "emptyDirSize": "64Mi"}))
    assert "PARLEY_HOOK_FOLDER" not in example("minimal").variables("orchestrator")


def test_debates_scale_nothing_where_no_metric_arrives() -> None:
    values = changed("services.orchestrator.autoscaling", {"enabled": True, "debates": 10}, "minimal")
    with pytest.raises(helm_python.HelmError, match=re.escape("telemetry.endpoint is empty")):
        render(values)


def test_a_trial_without_a_certificate_is_refused_where_callers_need_one() -> None:
    rules = [{"subject": "uri:spiffe://a/*", "tenant": "a", "roles": ["debate"]}]
    values = changed("services.orchestrator.settings.mtls_rules", rules, "minimal")
    values["access"]["clients"] = ["key", "mtls"]
    values["trial"] = {"enabled": True, "existingSecret": "key"}
    with pytest.raises(
        helm_python.HelmError, match=re.escape("trial.enabled is true, but access.clients has mtls")
    ):
        render(values)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("services.gateway.settings.openai_base_url", "https://models.example.org/v1"),
        ("vectors", {"url": "http://qdrant.databases.svc:6334"}),
        ("networkPolicy.enabled", False),
        ("image", {"pullPolicy": "Never"}),
        ("gateway.agents", "providers: [{name: house, base_url: 'https://models.example.org/v1'}]"),
        ("proxy.url", "http://proxy.example.org:443"),
        ("tls.renewBefore", "2159h59m59s"),
        ("defaults.podLabels", {"team": "platform"}),
    ],
)
def test_what_fits_together_is_taken(path: str, value: Any) -> None:
    assert render(changed(path, value)).objects


def test_no_store_and_no_provider_are_refused_with_what_to_do() -> None:
    for gone, told in (
        ("store", "store.existingSecret is empty: name a Secret"),
        ("services", "services.gateway.existingSecret is empty: name a Secret"),
    ):
        values = {name: part for name, part in values_of("minimal").items() if name != gone}
        with pytest.raises(helm_python.HelmError, match=re.escape(told)):
            render(values)


def commands(rendered: Rendered) -> list[list[str]]:
    lines = (line.strip() for line in rendered.notes.splitlines())
    return [shlex.split(line) for line in lines if line.startswith(("kubectl ", "helm ", "parley "))]


@pytest.mark.parametrize("name", EXAMPLES)
def test_commands_of_the_notes_name_what_is_installed(name: str) -> None:
    rendered = example(name)
    installed = {f"{each['kind'].lower()}/{each['metadata']['name']}" for each in rendered.objects}
    found = commands(rendered)
    assert len(found) >= len(SETTINGS) + 2
    for words in found:
        if words[0] == "parley":
            known = {option for each in parley.commands[words[1]].params for option in each.opts}
            assert {word for word in words if word.startswith("--")} <= known
        else:
            assert words[words.index("--namespace") + 1] == "debates"
            assert all(word in installed for word in words if "/" in word)
    assert any(words[:2] == ["helm", "test"] for words in found) == bool(rendered.of("Pod"))


def test_a_model_in_the_cluster_is_reached_once_a_rule_lets_the_gateway_out_to_pods() -> None:
    agents = "providers: [{name: vllm, base_url: 'http://vllm.models.svc.cluster.local/v1'}]"
    values = changed("gateway.agents", agents)
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "models"}}}
    values["networkPolicy"]["providers"] = [{"to": [peer], "ports": [{"port": 8000}]}]
    assert render(values).objects


def test_callers_from_outside_are_let_in_by_their_addresses_where_the_service_has_one_of_its_own() -> None:
    values = changed("service", {"type": "LoadBalancer", "annotations": {"example.org/internal": "true"}})
    values["networkPolicy"]["clients"] = [{"ipBlock": {"cidr": "10.0.0.0/8"}}]
    values["service"]["externalTrafficPolicy"] = "Local"
    service = render(values).one("Service", "parley")
    assert (service["spec"]["type"], service["spec"]["externalTrafficPolicy"]) == ("LoadBalancer", "Local")
    assert service["metadata"]["annotations"] == {"example.org/internal": "true"}


def test_a_route_leads_to_the_orchestrator_alone() -> None:
    values = changed(
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
    values = changed("route", {"enabled": True, "parentRefs": [{"name": "eg"}]}, "minimal")
    with pytest.raises(
        helm_python.HelmError, match=re.escape("networkPolicy.clients has no namespaceSelector")
    ):
        render(values)


def test_proxies_of_a_gateway_in_the_same_namespace_are_let_in_by_their_labels() -> None:
    values = changed("route", {"enabled": True, "parentRefs": [{"name": "eg"}]}, "minimal")
    proxies = {"podSelector": {"matchLabels": {"gateway.networking.k8s.io/gateway-name": "eg"}}}
    values["networkPolicy"] = {"clients": [proxies], "edgeClients": [proxies]}
    values["edge"] = {**values.get("edge", {}), "hosts": ["a.example.org"], "route": values["route"]}
    text = render(values).text
    assert text.count("gateway-name: eg") == 2


def test_objects_of_ones_own_are_made_with_the_names_of_the_release() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-mine"}}
    values = changed("extraObjects", [config, "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n"])
    rendered = render(values)
    assert rendered.one("ConfigMap", "parley-mine")
    assert rendered.one("Secret", "other")


def test_a_key_is_a_file_of_the_secret_and_the_program_of_the_word_command_reaches_its_key_service() -> None:
    values = changed("encryption.keys", ["2026-11", "command"])
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
    assert given_keys(rendered) == "/etc/parley/encryption/2026-11,command"
    values["encryption"] = {"command": "kms-wrap"}
    assert given_keys(render(values)) is None


def given_keys(rendered: Rendered) -> str | None:
    return rendered.variables("ratings").get("PARLEY_ENCRYPTION_KEYS")


def test_services_with_a_store_have_the_file_of_its_authority() -> None:
    rendered = render(changed("store.ca.existingSecret", "mongodb-ca"))
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


def test_a_service_runs_as_an_account_of_ones_own_with_variables_of_ones_own() -> None:
    own: dict[str, Any] = {
        "serviceAccount": {"create": False, "name": "cloud"},
        "extraEnv": [{"name": "GRPC_VERBOSITY", "value": "info"}],
        "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
        "strategy": {"maxSurge": "25%", "maxUnavailable": 1},
    }
    rendered = render(changed("services.ratings", own))
    deployment = rendered.one("Deployment", "parley-ratings")["spec"]
    pod = deployment["template"]["spec"]
    assert pod["serviceAccountName"] == "cloud"
    assert "parley-ratings" not in {each["metadata"]["name"] for each in rendered.of("ServiceAccount")}
    assert own["extraEnv"][0] in pod["containers"][0]["env"]
    assert own["extraEnvFrom"][0] in pod["containers"][0]["envFrom"]
    assert deployment["strategy"]["rollingUpdate"] == own["strategy"]
    annotated = changed("services.memory.serviceAccount", {"annotations": {"example.org/role": "reader"}})
    assert render(annotated).one("ServiceAccount", "parley-memory")["metadata"]["annotations"]


def test_the_platform_chooses_the_user_of_pods_where_none_is_named() -> None:
    values = values_of("dev")
    values["podUser"] = None
    for where, pod in render(values).pods():
        assert pod["securityContext"].keys() == {"runAsNonRoot", "seccompProfile"}, where


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_release_of_the_chart_alone_starts_no_pod_again(name: str) -> None:
    for each in (*example(name).of("Deployment"), *example(name).of("StatefulSet")):
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert not labels.keys() & {"app.kubernetes.io/version", "helm.sh/chart"}


def test_a_pod_that_cannot_work_keeps_no_node_from_being_drained() -> None:
    for each in example("production").of("PodDisruptionBudget"):
        assert each["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_pods_listen_and_are_reached_by_ipv6() -> None:
    rendered = render(changed("listen", "::"))
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
    values = changed(
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
    values = changed(
        "gateway.agents", f"providers: [{{name: house, base_url: 'http://{host}/v1'}}]", "minimal"
    )
    values["proxy"] = {"url": "http://proxy.example.org:3128", "except": ".house"}
    with pytest.raises(helm_python.HelmError, match=re.escape(told)):
        render(values)


def test_what_is_outside_the_cluster_is_asked_by_the_proxy_and_what_is_within_is_not() -> None:
    values = changed("proxy", {"url": "http://proxy.example.org:443", "except": "10.0.0.0/8,.house.example"})
    values["telemetry"]["endpoint"] = "http://otel:4317"
    rendered = render(values)
    for service in ("orchestrator", "gateway", "convergence"):
        given = rendered.variables(service)
        assert given["HTTPS_PROXY"] == given["HTTP_PROXY"] == "http://proxy.example.org:443"
        assert (
            given["NO_PROXY"] == "localhost,127.0.0.1,::1,.svc,.cluster.local,otel,10.0.0.0/8,.house.example"
        )
    assert "HTTPS_PROXY" not in rendered.variables("ratings")
