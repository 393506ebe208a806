"""What every pod of the chart keeps to."""

from typing import Any

import pytest

from tests.deploy.chart import EXAMPLES, SETTINGS, Object, Rendered, example, render, values_of

pytestmark = pytest.mark.parametrize("name", EXAMPLES)


def test_no_pod_runs_as_root_or_can_become_it(name: str) -> None:
    for where, pod in example(name).pods():
        security = pod["securityContext"]
        assert security["runAsNonRoot"], where
        assert security["runAsUser"] > 0, where
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, where
        assert not any(pod.get(each) for each in ("hostNetwork", "hostPID", "hostIPC")), where
    for where, container in example(name).containers():
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, where
        assert security["readOnlyRootFilesystem"] is True, where
        assert security["capabilities"] == {"drop": ["ALL"]}, where


def test_no_pod_has_a_token_or_variables_of_services_that_it_did_not_ask_for(name: str) -> None:
    for where, pod in example(name).pods():
        assert pod["automountServiceAccountToken"] is False, where
        assert pod["enableServiceLinks"] is False, where
    for each in example(name).of("ServiceAccount"):
        assert each["automountServiceAccountToken"] is False
    accounts = {each["metadata"]["name"] for each in example(name).of("ServiceAccount")}
    assert {pod["serviceAccountName"] for _, pod in example(name).pods()} <= accounts


def test_every_container_says_what_it_needs_and_takes_no_more_memory_than_it_may(name: str) -> None:
    for where, container in example(name).containers():
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}, where
        assert container["resources"]["limits"].keys() >= {"memory"}, where


def test_every_image_is_named_by_a_tag_or_a_digest_and_none_is_latest(name: str) -> None:
    for where, container in example(name).containers():
        image = container["image"]
        assert ":" in image.rpartition("/")[2], where
        assert not image.endswith(":latest"), where


def test_whatever_serves_is_probed(name: str) -> None:
    for where, container in example(name).containers():
        if where.startswith("Pod/"):
            continue
        assert container.keys() >= {"startupProbe", "readinessProbe", "livenessProbe"}, where


def test_liveness_asks_nothing_of_the_store_and_readiness_does(name: str) -> None:
    for service in SETTINGS:
        container = deployment(example(name), service)["spec"]["template"]["spec"]["containers"][0]
        health = {each["name"]: each["containerPort"] for each in container["ports"]}["health"]
        probes = {each: container[f"{each}Probe"] for each in ("startup", "liveness", "readiness")}
        if service == "edge":
            asked = {name: probe["httpGet"] for name, probe in probes.items()}
            assert {each["port"] for each in asked.values()} == {"health"}
            assert asked["liveness"]["path"] == asked["startup"]["path"] == "/healthz"
            assert asked["readiness"]["path"] == "/readyz"
            continue
        probes = {name: probe["grpc"] for name, probe in probes.items()}
        assert {each["port"] for each in probes.values()} == {health}
        assert probes["liveness"]["service"] == probes["startup"]["service"] == "liveness"
        assert probes["readiness"]["service"] == f"parley.v1.{service.title()}Service"


def test_a_pod_that_goes_has_time_to_hand_over(name: str) -> None:
    for service in SETTINGS:
        pod = deployment(example(name), service)["spec"]["template"]["spec"]
        grace = int(example(name).variables(service)["PARLEY_GRACE_SECONDS"])
        wait = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert wait > 0
        assert pod["terminationGracePeriodSeconds"] >= grace + wait + 5


def test_a_rollout_takes_no_replica_away_before_another_answers_and_a_drain_takes_one_at_a_time(
    name: str,
) -> None:
    for service in SETTINGS:
        strategy = deployment(example(name), service)["spec"]["strategy"]["rollingUpdate"]
        assert strategy == {"maxSurge": 1, "maxUnavailable": 0}
        budget = example(name).one("PodDisruptionBudget", f"parley-{service}")["spec"]
        assert budget["selector"]["matchLabels"] == selector(example(name), service)


def test_clients_see_every_pod_of_a_service(name: str) -> None:
    for service in SETTINGS:
        found = example(name).one("Service", f"parley-{service}")["spec"]
        assert found["clusterIP"] == "None"
        assert found["selector"] == selector(example(name), service)


def test_nothing_may_go_in_or_out_unless_a_policy_says_so(name: str) -> None:
    deny = example(name).one("NetworkPolicy", "parley-deny")["spec"]
    assert "ingress" not in deny
    assert {port["port"] for rule in deny["egress"] for port in rule["ports"]} == {53, 5353}
    for where, pod in list_labelled_pods(example(name)):
        assert deny["podSelector"]["matchLabels"].items() <= pod.items(), where


CALLS = {
    "orchestrator": {"orchestrator", "gateway", "convergence", "ratings", "memory"},
    "memory": {"convergence"},
    "edge": {"orchestrator"},
    "trial": {"orchestrator"},
}


def test_only_those_who_call_a_service_may_reach_it_and_those_may(name: str) -> None:
    rendered = example(name)
    for caller in (*SETTINGS, "trial"):
        for called in SETTINGS:
            allowed = may_call(rendered, caller, called)
            expected = called in CALLS.get(caller, ()) and (caller != "trial" or bool(rendered.of("Pod")))
            assert allowed == expected, f"{caller} -> {called}"


def test_a_change_of_a_variable_starts_the_pods_of_its_service_again(name: str) -> None:
    values: dict[str, Any] = values_of(name)
    values["services"] = {**values.get("services", {})}
    values["services"]["ratings"] = {
        **values["services"].get("ratings", {}),
        "settings": {"weight_rule": "elo"},
    }
    changed = render(values)
    for service in SETTINGS:
        sums = [
            deployment(each, service)["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            for each in (example(name), changed)
        ]
        assert (sums[0] != sums[1]) == (service == "ratings")


def deployment(rendered: Rendered, service: str) -> Object:
    return rendered.one("Deployment", f"parley-{service}")


def selector(rendered: Rendered, service: str) -> Any:
    return deployment(rendered, service)["spec"]["selector"]["matchLabels"]


def list_labelled_pods(rendered: Rendered) -> list[tuple[str, dict[str, str]]]:
    return [
        (
            each["metadata"]["name"],
            (each if each["kind"] == "Pod" else each["spec"]["template"])["metadata"]["labels"],
        )
        for each in rendered.objects
        if each["kind"] in {"Pod", "Deployment", "StatefulSet"}
    ]


def may_call(rendered: Rendered, caller: str, called: str) -> bool:
    """Whether the caller's way out and the called one's way in both name the other."""
    port = int(rendered.variables(called)["PARLEY_PORT"])
    goes_out = any(
        allows_to(rule, "to", called) and {"port": port, "protocol": "TCP"} in rule["ports"]
        for rule in rules(rendered, caller, "egress")
    )
    comes_in = any(allows_to(rule, "from", caller) for rule in rules(rendered, called, "ingress"))
    return goes_out and comes_in


def rules(rendered: Rendered, component: str, way: str) -> list[Any]:
    return [
        rule
        for policy in rendered.of("NetworkPolicy")
        if policy["spec"]["podSelector"]["matchLabels"].get("app.kubernetes.io/component") == component
        for rule in policy["spec"].get(way) or ()
    ]


def allows_to(rule: Any, way: str, component: str) -> bool:
    peers = (each.get("podSelector", {}).get("matchLabels", {}) for each in rule.get(way, ()))
    return any(each.get("app.kubernetes.io/component") == component for each in peers)
