"""The dashboard and the alerts ask for metrics that exist, in words that Prometheus and Grafana take."""

import json
import re
import shutil
import subprocess
from pathlib import Path
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


def promtool(*arguments: str) -> tuple[int, str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not here: apt-get install prometheus")
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def test_prometheus_takes_the_alerts() -> None:
    code, said = promtool("check", "rules", str(RULES))
    assert code == 0, said


IDLE = {'parley_debates_running{i="a"}': "0x180"}
LATE = "_x70 1x110"
"""A counter that is first heard of at its first count, after 70 minutes."""


def _edge(code: str) -> str:
    return f'parley_edge_call_duration_seconds_count{{rpc_response_status_code="{code}",i="a"}}'


@pytest.mark.parametrize(
    ("series", "alert", "fires"),
    [
        (IDLE, "ParleyTellsNothing", False),
        ({"up": "1x180"}, "ParleyTellsNothing", True),
        ({'parley_unreadable_total{parley_kind="debate"}': LATE}, "ParleyStoredThingsUnreadable", True),
        ({'parley_unreadable_total{parley_kind="debate"}': "1x180"}, "ParleyStoredThingsUnreadable", False),
        (
            {
                f'parley_debate_duration_seconds_count{{parley_outcome="failed",i="{each}"}}': LATE
                for each in "ab"
            },
            "ParleyDebatesFail",
            True,
        ),
        (
            {'parley_debate_duration_seconds_count{parley_outcome="failed",i="a"}': LATE},
            "ParleyDebatesFail",
            False,
        ),
        ({_edge("OK"): "0+60x180", _edge("UNAVAILABLE"): "0+12x180"}, "ParleyEdgeFails", True),
        ({_edge("OK"): "0+60x180", _edge("NOT_FOUND"): "0+60x180"}, "ParleyEdgeFails", False),
        ({"parley_delivery_oldest_seconds": "0+60x180"}, "ParleyDeliveriesWait", True),
        ({"parley_delivery_oldest_seconds": "0+30x180"}, "ParleyDeliveriesWait", False),
    ],
    ids=[
        "idle",
        "silent",
        "unreadable",
        "unreadable long ago",
        "two failed",
        "one failed",
        "edge fails",
        "edge refuses",
        "delivery waits long",
        "delivery waits",
    ],
)
def test_an_alert_fires_when_something_is_wrong_for_the_first_time_and_not_in_an_idle_installation(
    series: dict[str, str], alert: str, fires: bool, tmp_path: Path
) -> None:
    """The tool says of whatever it did not expect that it was there: nothing is expected."""
    checked = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [{"eval_time": "83m", "alertname": alert, "exp_alerts": []}],
            }
        ],
    }
    file = tmp_path / "alerts.yaml"
    file.write_text(yaml.safe_dump(checked))
    code, said = promtool("test", "rules", str(file))
    assert (code != 0, alert in said) == (fires, fires), said
