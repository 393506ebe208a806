"""Roles: what the shipped ones hold, and what a file must hold to be one."""

import pytest

from parley.config.default import DEFAULT
from parley.config.roles import OTHER_NAMES
from parley.gateway.plan import roster
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.roles.catalogue import (
    RoleFileError,
    Roles,
    UnknownRoleError,
    load_shipped_roles,
    parse_role,
)

MAX_WORDS = 120
"""A prompt has to leave room for the question and the proposals in a context of 2,048 tokens."""

DEBATER_SECTIONS, JUDGE_SECTIONS = V1.debater_sections, V1.judge_sections
DUTIES = (DEBATER_SECTIONS, JUDGE_SECTIONS)
DEBATER = "\n".join(f"# {name}\nDo {name}." for name in sorted(DEBATER_SECTIONS))
ROLES = load_shipped_roles()


DEBATERS = {
    "architect",
    "data-modeling",
    "generalist",
    "performance",
    "security",
    "simplicity",
    "testing",
}


def test_the_roles_of_a_panel_are_known() -> None:
    assert {*DEBATERS, "judge", "evaluator"} == set(ROLES.names())
    assert list(ROLES.names()) == sorted(ROLES.names())
    ROLES.check(
        [duty for each in all_formats().all() for duty in (each.debater_sections, each.judge_sections)]
    )


@pytest.mark.parametrize(("alias", "name"), [("kiss", "simplicity"), ("datamodeling", "data-modeling")])
def test_a_role_is_found_by_its_other_name(alias: str, name: str) -> None:
    assert ROLES.get(alias) is ROLES.get(name)
    assert ROLES.get(alias).name == name


def test_the_configuration_knows_the_other_names_of_all_roles() -> None:
    assert {alias: each.name for each in ROLES.all() for alias in each.aliases} == OTHER_NAMES


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UnknownRoleError, match=r"unknown role 'poet'; known roles: architect, data-modeling, .*testing"
    ):
        ROLES.get("poet")


@pytest.mark.parametrize("name", ROLES.names())
def test_every_prompt_is_short_enough_for_a_small_model(name: str) -> None:
    lengths = {section: len(text.split()) for section, text in ROLES.get(name).prompts.items()}

    assert max(lengths.values()) <= MAX_WORDS, lengths


def test_all_roles_of_a_panel_but_the_judge_debate() -> None:
    assert all(ROLES.get(each).serves(DEBATER_SECTIONS) for each in DEBATERS)
    assert not ROLES.get("judge").serves(DEBATER_SECTIONS)
    assert ROLES.get("judge").serves(JUDGE_SECTIONS)


def test_the_gateway_offers_every_role_that_debates() -> None:
    found = {name for name in ROLES.names() if ROLES.get(name).serves(DEBATER_SECTIONS)}
    assert {agent.role for agent in roster(DEFAULT).agents.values()} == found, "_ROLES in gateway/plan.py"


def test_no_two_roles_are_told_the_same_in_a_phase() -> None:
    for section in DEBATER_SECTIONS:
        told = [each.prompts[section] for each in ROLES.all() if each.serves(DEBATER_SECTIONS)]
        assert len(told) == len(set(told)), section


def test_a_file_is_a_role() -> None:
    role = parse_role("lawyer", f"aliases: counsel, attorney\n\n{DEBATER}\n")

    assert (role.name, role.aliases) == ("lawyer", ("counsel", "attorney"))
    assert role.prompts.keys() == DEBATER_SECTIONS
    assert role.prompts["propose"] == "Do propose."


def test_deeper_headings_belong_to_the_prompt() -> None:
    role = parse_role("lawyer", f"{DEBATER}\n\n## In short\nBe brief.\n")

    assert role.prompts["system"].endswith("## In short\nBe brief.")


def test_a_role_may_judge_and_not_debate() -> None:
    role = parse_role("umpire", "\n".join(f"# {name}\nDo it." for name in JUDGE_SECTIONS))

    assert role.serves(JUDGE_SECTIONS)
    assert not role.serves(DEBATER_SECTIONS)
    Roles([role]).check(DUTIES)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (DEBATER.replace("# refine", "# refresh"), "has sections that nothing reads: refresh"),
        (DEBATER.replace("Do refine.", " "), "has blank sections: refine"),
        (DEBATER.replace("# refine\n", ""), "lacks sections: refine"),
        ("# system\nJudge.\n# assess\nScore.", "lacks sections: summarize, synthesize"),
        (f"{DEBATER}\n# system\nAgain.", "has the section system twice"),
        (f"alias: counsel\n{DEBATER}", "may have one line `aliases: NAME, NAME`"),
        (f"aliases: counsel, \n{DEBATER}", "has an alias that is no name: ''"),
        ("", "lacks sections: assess, summarize, synthesize, system"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(text: str, wrong: str) -> None:
    with pytest.raises(RoleFileError, match=r"roles/lawyer\.md ") as error:
        Roles([parse_role("lawyer", text)]).check(DUTIES)

    assert wrong in str(error.value)


def test_two_roles_cannot_go_by_one_name() -> None:
    lawyer, judge = parse_role("lawyer", f"aliases: counsel\n{DEBATER}"), parse_role("counsel", DEBATER)

    with pytest.raises(RoleFileError, match="uses the name counsel, which role lawyer already uses"):
        Roles([lawyer, judge])
