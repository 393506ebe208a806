"""The chart, rendered by Helm's own code. `python -m tests.deploy.chart VALUES` prints what would be installed."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import helm_python
import yaml

from parley.convergence.settings import ConvergenceSettings
from parley.edge.settings import EdgeSettings
from parley.gateway.settings import GatewaySettings
from parley.memory.settings import MemorySettings
from parley.orchestrator.settings import OrchestratorSettings
from parley.ratings.settings import RatingsSettings
from parley.runtime.settings import ServiceSettings

ROOT: Final = Path(__file__).parents[2]
CHART: Final = ROOT / "charts" / "parley"
EXAMPLES: Final = ("minimal", "production", "dev")
SETTINGS: Final[Mapping[str, type[ServiceSettings]]] = {
    "orchestrator": OrchestratorSettings,
    "gateway": GatewaySettings,
    "convergence": ConvergenceSettings,
    "ratings": RatingsSettings,
    "memory": MemorySettings,
    "edge": EdgeSettings,
}

_LOADER: Final = yaml.CSafeLoader
"""The loader in Python takes eight times as long: more than Helm itself."""

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Rendered:
    """What an installation would make."""

    text: str
    objects: tuple[Object, ...]
    notes: str

    def of(self, kind: str) -> tuple[Object, ...]:
        return tuple(each for each in self.objects if each["kind"] == kind)

    def one(self, kind: str, name: str) -> Object:
        (found,) = (each for each in self.of(kind) if each["metadata"]["name"] == name)
        return found

    def pods(self) -> Iterator[tuple[str, Object]]:
        """Each pod's specification, by the object that makes it."""
        for each in self.objects:
            match each["kind"]:
                case "Pod":
                    yield f"Pod/{each['metadata']['name']}", each["spec"]
                case "Deployment" | "StatefulSet":
                    yield f"{each['kind']}/{each['metadata']['name']}", each["spec"]["template"]["spec"]

    def containers(self) -> Iterator[tuple[str, Object]]:
        for name, pod in self.pods():
            for container in [*pod.get("initContainers", ()), *pod["containers"]]:
                yield f"{name}/{container['name']}", container

    def variables(self, service: str) -> dict[str, str]:
        """A service's variables: their values, or where they come from."""
        container = self.one("Deployment", f"parley-{service}")["spec"]["template"]["spec"]["containers"][0]
        found: dict[str, str] = {}
        for source in container["envFrom"]:
            if "configMapRef" in source:
                found |= self.one("ConfigMap", source["configMapRef"]["name"])["data"]
        return found | {each["name"]: str(each.get("value", "")) for each in container.get("env", ())}


def render(values: Mapping[str, Any]) -> Rendered:
    """Render the chart as the release `parley` in `debates`. Raises helm_python.HelmError."""
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(dict(values))
        files = chart.render(dict(values), name="parley", namespace="debates")
    notes = files.pop("parley/templates/NOTES.txt")
    parts = [(name, files[name].strip()) for name in sorted(files) if files[name].strip()]
    text = "".join(f"---\n# Source: {name}\n{_without_mark(part)}\n" for name, part in parts)
    objects = tuple(each for each in yaml.load_all(text, _LOADER) if each)
    return Rendered(text, objects, notes)


def _without_mark(part: str) -> str:
    return part.removeprefix("---\n")


def example_file(name: str) -> Path:
    return CHART / "examples" / name / "values.yaml"


def values_of(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.load(example_file(name).read_text(), _LOADER)
    return values


@cache
def example(name: str) -> Rendered:
    return render(values_of(name))


if __name__ == "__main__":
    try:
        sys.stdout.write(render(yaml.safe_load(Path(sys.argv[1]).read_text())).text)
    except (OSError, yaml.YAMLError, helm_python.HelmError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")
