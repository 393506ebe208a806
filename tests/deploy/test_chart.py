"""The chart renders, for every example, what Kubernetes takes and what was looked at last time."""

import json
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
from tests.deploy.changed_values import change_value
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

    whole = json.loads(SCHEMA.read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(values) == set(whole["properties"]) - {"global"}
    assert set(values["defaults"]) == set(whole["properties"]["defaults"]["properties"])
    assert set(values["services"]) == set(SETTINGS)
    compare(values, whole, "values")


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
    rendered = render(change_value("hookFiles", {"existingClaim": "", "emptyDirSize": "64Mi"}))
    pod = rendered.one("Deployment", "parley-orchestrator")["spec"]["template"]["spec"]
    (volume,) = (each for each in pod["volumes"] if each["name"] == "hook-files")
    assert volume["emptyDir"] == {"sizeLimit": "64Mi"}
    with pytest.raises(helm_python.HelmError, match="both set"):
        render(change_value("hookFiles", {"existingClaim": "hooks", "emptyDirSize": "64Mi"}))
    assert "PARLEY_HOOK_FOLDER" not in example("minimal").variables("orchestrator")


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


def test_objects_of_ones_own_are_made_with_the_names_of_the_release() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-mine"}}
    values = change_value("extraObjects", [config, "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n"])
    rendered = render(values)
    assert rendered.one("ConfigMap", "parley-mine")
    assert rendered.one("Secret", "other")


def test_a_service_runs_as_an_account_of_ones_own_with_variables_of_ones_own() -> None:
    own: dict[str, Any] = {
        "serviceAccount": {"create": False, "name": "cloud"},
        "extraEnv": [{"name": "GRPC_VERBOSITY", "value": "info"}],
        "extraEnvFrom": [{"configMapRef": {"name": "more"}}],
        "strategy": {"maxSurge": "25%", "maxUnavailable": 1},
    }
    rendered = render(change_value("services.ratings", own))
    deployment = rendered.one("Deployment", "parley-ratings")["spec"]
    pod = deployment["template"]["spec"]
    assert pod["serviceAccountName"] == "cloud"
    assert "parley-ratings" not in {each["metadata"]["name"] for each in rendered.of("ServiceAccount")}
    assert own["extraEnv"][0] in pod["containers"][0]["env"]
    assert own["extraEnvFrom"][0] in pod["containers"][0]["envFrom"]
    assert deployment["strategy"]["rollingUpdate"] == own["strategy"]
    annotated = change_value(
        "services.memory.serviceAccount", {"annotations": {"example.org/role": "reader"}}
    )
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
