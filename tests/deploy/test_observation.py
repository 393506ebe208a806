"""The dashboard and the alerts ask for metrics that exist, in words that Prometheus and Grafana take."""

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from tests.deploy.chart import CHART, example
from tests.deploy.instruments import instruments

RULES = CHART / "files" / "rules.yaml"


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
    return found


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def queries() -> dict[str, str]:
    shown = {
        f"{panel['title']}/{each['refId']}": each["expr"]
        for panel in panels()
        for each in panel.get("targets", ())
    }
    return shown | {each["alert"]: each["expr"] for each in alerts()}


def names_in(query: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}|(by|without)\s*\([^)]*\)", "", query)
    return set(re.findall(r"\b(?:parley|gen_ai)_\w+", without_labels))


@pytest.mark.parametrize("where", queries())
def test_a_query_asks_for_metrics_that_a_service_makes(where: str) -> None:
    known = {series for each in instruments() for series in each.series}
    asked = names_in(queries()[where])
    assert asked, "it asks for nothing of ours"
    assert asked <= known


def test_every_instrument_is_seen_in_the_dashboard() -> None:
    asked = {name for query in queries().values() for name in names_in(query)}
    assert [each.name for each in instruments() if not each.series & asked] == []


def test_panels_have_ids_and_places_of_their_own() -> None:
    ids = [each["id"] for each in panels()]
    assert len(ids) == len(set(ids))
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in panels()]
    assert len(places) == len(set(places))
    assert all(each["gridPos"]["x"] + each["gridPos"]["w"] <= 24 for each in panels())
    assert all(each["description"] for each in panels() if each["type"] != "row")


def test_an_alert_says_how_bad_it_is_and_what_to_look_at() -> None:
    for each in alerts():
        assert each["labels"]["severity"] in {"warning", "critical"}, each["alert"]
        assert each["annotations"].keys() == {"summary", "description"}, each["alert"]


def test_the_chart_installs_the_dashboard_and_the_alerts_as_they_are_kept() -> None:
    (shown,) = [
        each["data"] for each in example("production").of("ConfigMap") if "parley.json" in each["data"]
    ]
    assert json.loads(shown["parley.json"])["panels"] == panels()
    (installed,) = example("production").of("PrometheusRule")
    assert installed["spec"] == yaml.safe_load(RULES.read_text())


def test_prometheus_takes_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not here: apt-get install prometheus")
    ended = subprocess.run(
        [promtool, "check", "rules", str(RULES)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
