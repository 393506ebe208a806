"""Roles of one's own: in the configuration file, and in the folder beside it."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from parley.config import loading as config
from parley.config.default import DEFAULT
from parley.config.errors import ConfigError
from parley.config.file import ConfigFile
from parley.config.messages import agent_message
from parley.config.schema import schema

LAWYER = "aliases: counsel\n\n# system\nYou are a lawyer.\n\n# propose\nPropose what holds in court.\n"
FILE = (
    "agents:\n- role: Counsel\n- {role: poet, id: bard}\n- role: kiss\n"
    "judge: {role: umpire}\n"
    "roles:\n  poet: {system: You rhyme., critique: Be kind.}\n  umpire: prompts/umpire.md\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "lawyer.md").write_text(LAWYER)
    (tmp_path / "roles" / "README.md").write_text("# What is here\n")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "umpire.md").write_text("# system\nYou judge.\n")
    return tmp_path


def load(folder: Path, text: str) -> ConfigFile:
    (folder / "parley.yaml").write_text(text)
    return config.load(folder / "parley.yaml")


def problems(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text)
    return tuple(each.replace(f"{folder.resolve()}/", "") for each in caught.value.problems)


def test_roles_of_the_file_and_of_the_folder_travel_with_their_agents(folder: Path) -> None:
    found = load(folder, FILE)
    jsonschema.Draft202012Validator(schema()).validate(yaml.safe_load(FILE))
    lawyer, poet, simplicity, judge = map(agent_message, (*found.agents, found.judge))
    assert (lawyer.id, lawyer.role, lawyer.own_role.source) == (
        "lawyer",
        "lawyer",
        str((folder / "roles/lawyer.md").resolve()),
    )
    assert dict(lawyer.own_role.sections) == {
        "system": "You are a lawyer.",
        "propose": "Propose what holds in court.",
    }
    assert (poet.id, poet.own_role.source) == ("bard", f"{folder / 'parley.yaml'}: roles.poet")
    assert poet.own_role.sections["critique"] == "Be kind."
    assert (simplicity.role, simplicity.HasField("own_role")) == ("simplicity", False)
    assert judge.own_role.sections["system"] == "You judge."
    assert [each.name for each in found.roles] == ["poet", "umpire", "lawyer"]


def test_a_role_of_ones_own_may_take_the_place_of_a_built_in_one(folder: Path) -> None:
    found = load(folder, "agents: [{role: security}]\nroles: {security: {system: Trust nobody.}}\n")
    assert agent_message(found.agents[0]).own_role.sections["system"] == "Trust nobody."


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("poet: 3", "must be the path of a role's file, or a mapping of prompts"),
        ("poet: {system: [x]}", "must be the path of a role's file, or a mapping of prompts"),
        ("poet: none.md", "none.md cannot be read: No such file or directory"),
        ("poet: {propose: x}", "parley.yaml: roles.poet lacks the section system"),
        ("poet: {system: ' '}", "parley.yaml: roles.poet has blank sections: system"),
        ("poet: bad.md", "bad.md has the section system twice"),
    ],
)
def test_a_role_that_cannot_be_used_is_named_with_its_line(folder: Path, said: str, problem: str) -> None:
    (folder / "bad.md").write_text("# system\na\n# system\nb\n")
    (told,) = problems(folder, f"roles:\n  {said}\n")
    assert told == f"parley.yaml:2: roles.poet: {problem}"


def test_a_name_that_no_role_may_have_is_refused(folder: Path) -> None:
    (told,) = problems(folder, "roles:\n  My Role: {system: x}\n")
    assert told.endswith("roles.My Role: must be up to 32 of a-z, 0-9 and `-`, and not begin with `-`")


def test_every_file_of_the_folder_that_cannot_be_used_is_named(folder: Path) -> None:
    (folder / "roles" / "poet.md").write_text("You rhyme.\n")
    (folder / "roles" / "umpire.md").write_text("# propose\nx\n")
    assert problems(folder, "roles: {counsel: {system: x}}\n") == (
        "roles/lawyer.md: counsel is the name of another role too",
        "roles/poet.md may have one line `aliases: NAME, NAME` before its first section, and nothing else",
        "roles/umpire.md lacks the section system",
    )


def test_without_a_file_there_are_no_roles_of_ones_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert DEFAULT.roles == ()
