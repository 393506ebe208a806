"""What a configuration file may say, and what it is told when it says something else."""

import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from msgspec import structs

from parley.config import loading as config
from parley.config.default import DEFAULT
from parley.config.messages import agent_message, debate_message
from parley.config.prompts import Prompt
from parley.config.schema import schema, schema_text
from parley.v1 import agent_pb2, panel_pb2
from parley.v1.debate_pb2 import DebateSpec
from tests.unit.config.refusals import list_problems

PANEL = {
    "agents": [
        {
            "id": "agent-architect",
            "name": "System Architect",
            "role": "architect",
            "model": "gpt-4",
            "provider": "openai",
            "temperature": 0.5,
            "enabled": True,
            "systemPromptPath": "prompts/architect.md",
            "tools": [],
            "toolCallLimit": 7,
            "clarificationPromptPath": "prompts/ask.md",
        },
        {
            "id": "agent-kiss",
            "name": "Simplicity",
            "role": "kiss",
            "model": "anthropic/claude",
            "provider": "openrouter",
            "temperature": 1,
            "summarization": {"enabled": False, "maxLength": 1000},
        },
        {
            "id": "agent-off",
            "name": "Off",
            "role": "testing",
            "model": "x",
            "provider": "openai",
            "enabled": False,
        },
    ],
    "judge": {
        "id": "judge-main",
        "name": "Judge",
        "role": "generalist",
        "model": "gpt-4",
        "provider": "openai",
    },
    "debate": {
        "rounds": 2,
        "terminationCondition": {"type": "fixed"},
        "synthesisMethod": "judge",
        "includeFullHistory": False,
        "timeoutPerRound": 300000,
        "summarization": {"enabled": True, "threshold": 4000, "maxLength": 2000, "method": "length-based"},
        "orchestratorType": "adaptive",
        "interactiveClarifications": False,
        "clarificationsMaxPerAgent": 4,
    },
    "trace": "langfuse",
}


def test_a_panel_configuration_in_camel_case_is_used_unmodified(tmp_path: Path) -> None:
    path = tmp_path / "debate-config.json"
    path.write_text(json.dumps(PANEL, indent="\t"))
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "architect.md").write_text("Be bold.")
    (tmp_path / "prompts" / "ask.md").write_text("Ask boldly.")
    found = config.load(path)
    architect, simplicity = found.agents
    assert (architect.id, architect.routes, architect.temperature) == (
        "agent-architect",
        ("openai/gpt-4",),
        0.5,
    )
    assert architect.system_prompt == Prompt("Be bold.", str((tmp_path / "prompts/architect.md").resolve()))
    assert (simplicity.role, simplicity.routes) == ("simplicity", ("openrouter/anthropic/claude",))
    assert architect.clarification_prompt == Prompt(
        "Ask boldly.", str((tmp_path / "prompts/ask.md").resolve())
    )
    assert found.debate is not None
    assert not found.debate.interactive_clarifications
    asking = dataclasses.replace(found.debate, interactive_clarifications=True)
    assert debate_message(asking).clarifications.max_per_agent == 4
    assert agent_message(simplicity).summaries == agent_pb2.SummarySettings(enabled=False, max_length=1000)
    assert (architect.tools, architect.tool_call_limit) == ((), 7)
    assert found.judge.id == "judge-main"
    panel = debate_message(found.debate).panel
    assert (panel.rounds, panel.include_full_history) == (2, False)
    assert [notice.split(": ")[1] for notice in found.notices] == [
        "debate.orchestratorType",
        "trace",
    ]


def test_snake_case_in_yaml_says_the_same() -> None:
    text = yaml.safe_dump(
        {"agents": [{"role": "kiss", "system_prompt_path": "none.md"}], "debate": {"rounds": 1}}
    )
    found = config.loads(text, "parley.yaml", Path())
    assert [(agent.id, agent.name, agent.role, agent.routes) for agent in found.agents] == [
        ("simplicity", "simplicity", "simplicity", ())
    ]
    assert debate_message(found.debate).panel.rounds == 1


def test_the_judge_and_routes_may_be_called_stronger() -> None:
    text = "judge: {model: large, stronger: true}\nroutes: [{provider: openai, model: m, stronger: true}]\n"
    found = config.loads(text, "parley.yaml", Path())
    assert (agent_message(found.judge).stronger, found.routes[0].stronger) == (True, True)


def test_a_file_that_says_nothing_is_known_as_empty() -> None:
    for text in ("", "# to be written\n", "{}"):
        assert config.loads(text, "debate.yaml", Path()).empty
    assert not config.loads("debate:\n  rounds: 1\n", "debate.yaml", Path()).empty


def test_merge_keys_and_aliases_work() -> None:
    text = "agents:\n- &base {role: architect, temperature: 0.5}\n- {<<: *base, id: second}\n"
    found = config.loads(text, "debate.yaml", Path())
    assert [(agent.id, agent.temperature) for agent in found.agents] == [("architect", 0.5), ("second", 0.5)]


def test_json_is_read_as_json(tmp_path: Path) -> None:
    assert list_problems('{\n "judge": }', "x.json") == (
        "x.json:2: is not JSON: column 11: a value must stand here",
    )
    found = config.loads('{"judge":\t{"name": "\\ud83d\\ude00 \\/", "temperature": 1e0}}', "x.json", tmp_path)
    assert (found.judge.name, found.judge.temperature) == ("\U0001f600 /", 1.0)
    assert list_problems('{"judge": {"name": "\\ud83d"}}', "x.json") == (
        "x.json:1: holds a broken character",
    )


def test_missing_sections_fall_back_with_a_notice() -> None:
    found = config.loads("", "parley.yaml", Path())
    assert found.notices == (
        "parley.yaml: no agents section: architect and performance debate",
        "parley.yaml: no judge section: a generalist judges",
        "parley.yaml: no debate section: rounds as long as something is disputed, 3 at most",
    )
    assert [agent.id for agent in found.agents] == ["architect", "performance"]
    assert (found.team_given, found.judge_given) == (False, False)


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "cannot be read: No such file or directory"), (b" \n", "is blank"), (b"\xff", "is not UTF-8")],
)
def test_a_prompt_file_that_cannot_be_used_gives_way_to_the_built_in_one(
    tmp_path: Path, content: bytes | None, why: str
) -> None:
    if content is not None:
        (tmp_path / "p.md").write_bytes(content)
    path = tmp_path / "parley.yaml"
    path.write_text("agents:\n- role: architect\n  system_prompt_path: p.md\n")
    found = config.load(path)
    assert found.agents[0].system_prompt is None
    assert found.warnings == (
        f"{path}:3: agents[0].system_prompt_path: p.md {why}; the built-in prompt is used",
    )


def test_a_warning_spells_a_key_as_the_file_does() -> None:
    found = config.loads("agents:\n- {role: kiss, systemPromptPath: none.md}\n", "debate.yaml", Path())
    assert found.warnings[0].startswith("debate.yaml:2: agents[0].systemPromptPath: none.md cannot be read")


@pytest.mark.parametrize("tool", ["file_read", "{name: file_read}"])
def test_a_tool_is_written_by_its_name_alone_or_in_a_mapping(tool: str) -> None:
    text = f"agents:\n- {{role: kiss, tools: [{tool}]}}\n"
    assert config.loads(text, "debate.yaml", Path()).agents[0].tools == ("file_read",)
    jsonschema.Draft202012Validator(schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "debate:\n  termination: {rule: convergence, threshold: 85}\n  history_limit: 0\n  patterns: false\n  knowledge: false\n  domain: storage\n",
        '{"debate": {"terminationCondition": {"type": "convergence", "threshold": 85}, "historyLimit": 0, "patterns": false, "knowledge": false, "domain": "storage"}}',
    ],
)
def test_when_the_rounds_end_what_is_recalled_and_the_domain_reach_the_debate(text: str) -> None:
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate)
    assert spec.panel.termination.rule == panel_pb2.TERMINATION_RULE_CONVERGENCE
    assert spec.panel.termination.threshold_percent == 85
    assert spec.HasField("history_limit")
    assert (spec.history_limit, spec.domain) == (0, "storage")
    for name in ("patterns", "knowledge"):
        assert (spec.HasField(name), getattr(spec, name)) == (True, False)
    jsonschema.Draft202012Validator(schema()).validate(yaml.safe_load(text))


@pytest.mark.parametrize(
    "key", ["clarificationsMaxIterations", "clarifications_max_iterations", "clarificationsMaxTimes"]
)
def test_how_often_questions_are_put_has_a_name_in_panel_configurations(key: str) -> None:
    text = json.dumps({"debate": {"interactiveClarifications": True, key: 2}})
    found = config.loads(text, "debate-config.json", Path())
    assert debate_message(found.debate).clarifications.max_times == 2
    assert not [notice for notice in found.notices if "larification" in notice]
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))


def test_limits_reach_the_debate_in_the_contracts_units() -> None:
    text = (
        "debate:\n  call_timeout_seconds: 30\n  timeout_per_round: 120500\n  total_timeout_seconds: 1800\n"
        "  checkpoint_timeout_seconds: 60\n  waiting_seconds: 0\n  max_tokens: 5000\n  max_cost: 0.5\n"
        "  max_concurrent_critiques: 3\n  max_concurrent_revisions: 4\n  max_concurrent_proposals: 0\n"
    )
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate)
    limits = spec.limits
    assert limits.HasField("waiting")
    times = (limits.call, limits.round, limits.total, limits.checkpoint, limits.waiting)
    assert [each.ToMilliseconds() / 1000 for each in times] == [30, 120.5, 1800, 60, 0]
    assert (limits.max_tokens, limits.max_cost_micros) == (5000, 500_000)
    assert spec.concurrency == {"critiques": 3, "refinements": 4}


def test_what_a_file_does_not_say_is_left_to_the_orchestrator() -> None:
    spec = debate_message(config.loads("debate: {rounds: 2}\n", "debate.yaml", Path()).debate)
    assert spec == DebateSpec(panel=panel_pb2.PanelSettings(rounds=2))


@pytest.mark.parametrize(
    ("said", "method"),
    [
        ("judge", panel_pb2.SYNTHESIS_METHOD_JUDGE),
        ("voting", panel_pb2.SYNTHESIS_METHOD_VOTING),
        ("merge", panel_pb2.SYNTHESIS_METHOD_MERGE),
    ],
)
@pytest.mark.parametrize("key", ["synthesis_method", "synthesisMethod"])
def test_the_way_to_the_answer_travels(
    key: str, said: str, method: panel_pb2.SynthesisMethod.ValueType
) -> None:
    spec = debate_message(config.loads(f"debate: {{{key}: {said}}}\n", "debate.yaml", Path()).debate)
    assert spec == DebateSpec(panel=panel_pb2.PanelSettings(synthesis_method=method))


@pytest.mark.parametrize("limit", ["tool_call_limit", "toolCallLimit"])
def test_tools_of_agents_and_judge_travel_with_their_limit(limit: str) -> None:
    text = (
        f"agents:\n- {{role: kiss, tools: [file_read, list_files], {limit}: 5}}\n- role: testing\n"
        "judge: {tools: [context_search]}\n"
    )
    found = config.loads(text, "debate.yaml", Path())
    first, second, judge = map(agent_message, (*found.agents, found.judge))
    assert (list(first.tools), first.tool_call_limit) == (
        [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_LIST_FILES],
        5,
    )
    assert (list(second.tools), second.tool_call_limit) == ([], 0)
    assert list(judge.tools) == [agent_pb2.TOOL_CONTEXT_SEARCH]


@pytest.mark.parametrize("key", ["termination", "terminationCondition"])
def test_a_rule_alone_may_say_when_the_rounds_end(key: str) -> None:
    text = f"debate: {{{key}: undisputed, effort: standard}}\n"
    spec = debate_message(config.loads(text, "debate.yaml", Path()).debate)
    assert spec.panel == panel_pb2.PanelSettings(
        termination=panel_pb2.Termination(rule=panel_pb2.TERMINATION_RULE_UNDISPUTED),
        effort=panel_pb2.EFFORT_STANDARD,
    )
    jsonschema.Draft202012Validator(schema()).validate(yaml.safe_load(text))
    assert not jsonschema.Draft202012Validator(schema()).is_valid({"debate": {key: "never"}})


def test_the_published_schema_is_the_one_the_reader_uses() -> None:
    assert Path(config.__file__).with_name("schema.json").read_text() == schema_text()


def test_the_schema_takes_what_the_reader_takes() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(PANEL)
    assert not validator.is_valid({"debate": {"rounds": 0}})
    assert not validator.is_valid({"judge": {"tools": ["shell"]}})
    assert not validator.is_valid({"agents": [{"role": "architect", "modle": "x"}]})


def test_settings_travel_as_they_are_written() -> None:
    found = config.loads(json.dumps(PANEL), "x.json", Path())
    spec = debate_message(found.debate)
    panel = spec.panel
    assert (panel.rounds, panel.include_full_history, panel.HasField("carry_forward")) == (2, False, False)
    assert spec.limits.round.ToSeconds() == 300
    assert (panel.summaries.threshold, panel.summaries.max_length) == (4000, 2000)
    assert spec.panel.termination.rule == panel_pb2.TERMINATION_RULE_FIXED
    agent = agent_message(found.agents[1])
    assert (agent.id, agent.role, list(agent.routes)) == (
        "agent-kiss",
        "simplicity",
        ["openrouter/anthropic/claude"],
    )
    assert agent.summaries.HasField("enabled")
    assert not agent.summaries.enabled


def test_what_holds_without_a_file_is_what_an_empty_one_says(tmp_path: Path) -> None:
    empty = config.loads("{}", "debate.yaml", tmp_path)
    assert structs.replace(empty, debate=None, gaps={}, notices=(), places=DEFAULT.places) == DEFAULT
