"""Configuration files that are refused, and what is said of them."""

from pathlib import Path

import pytest

from parley.config import loading as config
from parley.config.errors import ConfigError
from tests.unit.config.refusals import list_problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "agents:\n- role: architect\n- role: security\n  modle: x\n",
            "debate.yaml:4: agents[1].modle: unknown key; did you mean model?",
        ),
        (
            "agents:\n- role: architect\n  qqq: x\n",
            (
                "debate.yaml:3: agents[0].qqq: unknown key; known keys: clarification_prompt_path, enabled, id, model, name, provider, role, "
                "routes, summarization, summary_prompt_path, system_prompt_path, temperature, tool_call_limit, tools"
            ),
        ),
        ("agents:\n- id: ada\n", "debate.yaml:2: agents[0].role: is missing"),
        ("debate:\n  rounds: 0\n", "debate.yaml:2: debate.rounds: must be at least 1"),
        ("debate:\n  rounds: two\n", "debate.yaml:2: debate.rounds: must be a whole number"),
        ("debate:\n  carryForward: 1\n", "debate.yaml:2: debate.carryForward: must be true or false"),
        ("agents: architect\n", "debate.yaml:1: agents: must be a list, not text"),
        ("judge: [x]\n", "debate.yaml:1: judge: must be a mapping, not a list"),
        (
            "judge:\n  stronger: true\n",
            "debate.yaml:2: judge.stronger: needs the judge's model or routes; say `stronger` of a route otherwise",
        ),
        (
            "judge:\n  role: 3\n",
            "debate.yaml:2: judge.role: must be text (in quotes, if it looks like a number or a yes)",
        ),
        ("judge:\n  temperature: .nan\n", "debate.yaml:2: judge.temperature: must be a number"),
        (
            "debate:\n  termination_condition:\n    type: never\n",
            "debate.yaml:3: debate.termination_condition.type: must be 'fixed', 'convergence', 'quality' or 'undisputed'",
        ),
        (
            "debate:\n  termination: never\n",
            "debate.yaml:2: debate.termination.rule: must be 'fixed', 'convergence', 'quality' or 'undisputed'",
        ),
        ("debate:\n  termination: 3\n", "debate.yaml:2: debate.termination: must be a mapping"),
        ("debate:\n  rounds: 1\n  rounds: 2\n", "debate.yaml:3: rounds: is here twice, first on line 2"),
        (
            "debate:\n  include_full_history: true\n  includeFullHistory: true\n",
            "debate.yaml:3: debate.includeFullHistory: is here twice, once as include_full_history",
        ),
        ("agents:\n- role: a\n  enabled: false\n", "debate.yaml:1: agents: no agent is left; enable one"),
        ("agents: []\n", "debate.yaml:1: agents: there is none; name one, or leave `agents` out"),
        (
            "agents: [architect]\n",
            "debate.yaml:1: agents[0]: must be a mapping, such as `role: architect`, not text",
        ),
        (
            "agents:\n  - role: a\n   id: b\n",
            "debate.yaml:3: is not YAML: this line does not fit those before it; check how far each is indented",
        ),
        (
            "debate:\n  rounds: 1\n   domain: x\n",
            "debate.yaml:3: is not YAML: a second `:` stands in this line, or it is indented too far; text with `: ` needs quotes",
        ),
        ("agents:\n- role: a\nid b\n", "debate.yaml:3: is not YAML: a key without `:` stands here"),
        (
            "judge:\n  role: @a\n",
            "debate.yaml:2: is not YAML: text that begins with such a character needs quotes",
        ),
        (
            "judge:\n  role: 'it's'\n",
            "debate.yaml:2: is not YAML: text stands behind a closing quote or bracket",
        ),
        ("agents: [{role: a}]]\n", "debate.yaml:1: is not YAML: a bracket closes nothing"),
        (
            "agents: [{role: a}], [{role: b}]\n",
            "debate.yaml:1: is not YAML: a comma stands behind a closing quote or bracket",
        ),
        (
            "debate:\n    rounds: 1\n  domain: x\n",
            "debate.yaml:3: is not YAML: this line does not fit those before it; check how far each is indented",
        ),
        (
            "agents:\n- role: a\n- role: a\n",
            "debate.yaml:3: agents[1].id: a is the id of another agent too",
        ),
        ("agents:\n- role: judge\n", "debate.yaml:1: agents: judge is the id of an agent and of the judge"),
        (
            "agents:\n- role: a\n  provider: nobody\n  model: m\n",
            "debate.yaml:3: agents[0].provider: unknown provider nobody; known providers: openai, openrouter",
        ),
        (
            "agents:\n- role: a\n  provider: openai\n",
            "debate.yaml:3: agents[0].provider: needs a model too",
        ),
        (
            "agents:\n- role: a\n  routes: [fast]\n",
            "debate.yaml:3: agents[0].routes[0]: unknown route fast; known routes: openai/MODEL, openrouter/MODEL",
        ),
        (
            "providers:\n- name: mine\n",
            "debate.yaml:2: providers[0]: an openai-compatible provider needs a base_url",
        ),
        ("- a\n", "debate.yaml:1: must be a mapping of agents, judge, debate, providers, routes and roles"),
        ("a: [1\n", "debate.yaml:2: is not YAML: expected ',' or ']', but got '<stream end>'"),
        ("? [a]\n: b\n", "debate.yaml:1: a key must be text"),
        ("judge:\n  name: !secret x\n", "debate.yaml:2: tags such as !secret have no meaning here"),
    ],
)
def test_a_mistake_is_named_with_file_line_and_key(text: str, expected: str) -> None:
    assert list_problems(text)[0] == expected


def test_every_mistake_of_a_file_is_told_in_its_order() -> None:
    found = list_problems("debate:\n  rounds: 0\n  wrong: 1\nagents: x\n")
    assert [line.split(":")[1] for line in found] == ["2", "3", "4"]


def test_a_key_in_the_file_is_refused_and_not_repeated() -> None:
    text = "providers:\n- name: mine\n  base_url: http://localhost:1/v1\n  api_key: sk-secret\n"
    (line,) = list_problems(text)
    assert line.startswith("debate.yaml:4: providers[0].api_key: a key does not belong in a file")
    assert "sk-secret" not in line


def test_a_key_in_a_header_is_refused_too() -> None:
    text = "providers:\n- name: mine\n  base_url: http://localhost:1/v1\n  headers:\n    Authorization: Bearer sk\n"
    assert list_problems(text) == (
        "debate.yaml:5: providers[0].headers.Authorization: a key does not belong in a file; use api_key_env",
    )


@pytest.mark.parametrize(
    ("url", "wrong"),
    [
        ("http://[::1/v1", "is not an address: Invalid IPv6 URL"),
        ("http://localhost:99999/v1", "is not an address: Port out of range 0-65535"),
        ("http://localhost:0/v1", "is not an address: Port out of range 0-65535"),
        ("http:///v1", "is not an address: it has no host that can be asked"),
        ("http://a..b/v1", "is not an address: it has no host that can be asked"),
        ("http://10.0.0/v1", "is not an address: it has no host that can be asked"),
        ("http://10.0.0.256/v1", "is not an address: it has no host that can be asked"),
        ("http://✓.example/v1", "must be ASCII; write a host of other letters as xn--…"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused(url: str, wrong: str) -> None:
    text = f"providers:\n- name: mine\n  base_url: '{url}'\n"
    assert list_problems(text) == (f"debate.yaml:3: providers[0].base_url: {wrong}",)


@pytest.mark.parametrize(
    "url", ["http://model_server:8000/v1", "https://[::1]:8080/v1", "http://10.0.0.7/openai/v1?api-version=1"]
)
def test_an_endpoint_inside_a_cluster_is_taken(url: str) -> None:
    assert (
        config.loads(f"providers:\n- name: mine\n  base_url: '{url}'\n", "debate.yaml", Path())
        .providers[0]
        .base_url
        == url
    )


@pytest.mark.parametrize(
    ("header", "wrong"),
    [
        ("X-A: ✓", "X-A: must be one line of ASCII text"),
        ('X-A: "a\\tb"', "X-A: must be one line of ASCII text"),
        ("X é: b", "X é: is not the name of a header: letters, digits and `-` make one"),
        ("'X:': b", "X:: is not the name of a header: letters, digits and `-` make one"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(header: str, wrong: str) -> None:
    text = f"providers:\n- name: mine\n  base_url: http://localhost:1/v1\n  headers:\n    {header}\n"
    assert list_problems(text) == (f"debate.yaml:5: providers[0].headers.{wrong}",)


def test_aliases_that_stand_for_too_much_are_refused_at_once() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "holds more than 20000 values, aliases included" in list_problems("\n".join(lines))[0]


def test_an_alias_inside_itself_is_refused() -> None:
    assert len(list_problems("a: &a [*a]\n")) == 1


def test_deep_nesting_is_refused() -> None:
    assert list_problems("[" * 1_000) == ("debate.yaml: is nested too deeply",)


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "parley.yaml"
    path.write_bytes(b"judge:\n  name: \xff\n")
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert caught.value.problems == (f"{path}:2: is not UTF-8; save it as UTF-8",)


def test_a_mapping_that_is_more_than_the_name_of_a_tool_is_refused() -> None:
    assert list_problems("agents:\n- {role: kiss, tools: [{name: file_read, limit: 3}]}\n") == (
        "debate.yaml:2: agents[0].tools[0]: must be 'context_search', 'file_read' or 'list_files'",
    )


@pytest.mark.parametrize(
    ("providers", "environment", "missing"),
    [
        ("", {}, "OPENAI_API_KEY"),
        ("", {"OPENAI_API_KEY": "k"}, None),
        ("", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, None),
        ("providers: [{name: openai, base_url: 'http://127.0.0.1:1/v1'}]\n", {}, None),
        ("providers: [{name: openai, kind: openai, api_key_env: MINE}]\n", {"OPENAI_API_KEY": "k"}, "MINE"),
    ],
)
def test_a_key_that_a_provider_needs_and_nobody_set_is_named(
    providers: str, environment: dict[str, str], missing: str | None
) -> None:
    text = "agents:\n- role: a\n  provider: openai\n  model: m\n" + providers
    problem = config.loads(text, "debate.yaml", Path()).find_missing_key(environment)
    expected = f"debate.yaml:3: agents[0].provider: provider openai needs {missing}, which is not set"
    assert (str(problem) if problem else None) == (expected if missing else None)


def test_a_mistake_in_tools_names_its_place_and_the_known_ones() -> None:
    text = (
        "agents:\n- role: kiss\n  tools:\n  - file_read\n  - shell\n"
        "- {role: testing, tools: file_read}\njudge:\n  toolCallLimit: 101\n"
    )
    assert list_problems(text) == (
        "debate.yaml:5: agents[0].tools[1]: must be 'context_search', 'file_read' or 'list_files'",
        "debate.yaml:6: agents[1].tools: must be a list, not text",
        "debate.yaml:8: judge.toolCallLimit: must be at most 100",
    )


def test_a_tool_is_named_once() -> None:
    assert list_problems("agents:\n- role: kiss\n  tools: [list_files, list_files]\n") == (
        "debate.yaml:3: agents[0].tools[1]: list_files is there twice",
    )


def test_the_rule_that_ends_rounds_is_said_once() -> None:
    text = "debate:\n  termination: {rule: fixed}\n  terminationCondition: {type: quality}\n"
    assert list_problems(text) == (
        "debate.yaml:3: debate.terminationCondition: is here twice, once as termination",
    )
