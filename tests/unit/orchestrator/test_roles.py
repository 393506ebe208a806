import pytest

from parley.orchestrator import roles
from parley.orchestrator.roles import (
    DEBATER_PROMPTS,
    JUDGE_PROMPTS,
    RoleFileError,
    UnknownRoleError,
    parse_role,
)

MOST_WORDS = 120
"""A prompt has to leave room for the question and the proposals in a context of 2,048 tokens."""

DEBATER = "\n".join(f"# {name}\nDo {name}." for name in sorted(DEBATER_PROMPTS))


def test_the_roles_of_a_panel_are_known() -> None:
    assert roles.known() == (
        "architect",
        "data-modeling",
        "generalist",
        "judge",
        "performance",
        "security",
        "simplicity",
        "testing",
    )


@pytest.mark.parametrize(("alias", "name"), [("kiss", "simplicity"), ("datamodeling", "data-modeling")])
def test_a_role_is_found_by_its_other_name(alias: str, name: str) -> None:
    assert roles.get(alias) is roles.get(name)
    assert roles.get(alias).name == name


def test_an_unknown_role_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        UnknownRoleError, match=r"unknown role 'poet'; known roles: architect, data-modeling, .*testing"
    ):
        roles.get("poet")


@pytest.mark.parametrize("name", roles.known())
def test_every_prompt_is_short_enough_for_a_small_model(name: str) -> None:
    lengths = {section: len(text.split()) for section, text in roles.get(name).prompts.items()}

    assert max(lengths.values()) <= MOST_WORDS, lengths


def test_all_roles_but_the_judge_debate() -> None:
    assert [name for name in roles.known() if not roles.get(name).can_debate] == ["judge"]
    assert roles.get("judge").can_judge


def test_no_two_roles_are_told_the_same_in_a_phase() -> None:
    for section in DEBATER_PROMPTS:
        told = [roles.get(name).prompt(section) for name in roles.known() if roles.get(name).can_debate]
        assert len(told) == len(set(told)), section


def test_a_file_is_a_role() -> None:
    role = parse_role("lawyer", f"aliases: counsel, attorney\n\n{DEBATER}\n")

    assert (role.name, role.aliases) == ("lawyer", ("counsel", "attorney"))
    assert role.prompts.keys() == DEBATER_PROMPTS
    assert role.prompt("propose") == "Do propose."


def test_deeper_headings_belong_to_the_prompt() -> None:
    role = parse_role("lawyer", f"{DEBATER}\n\n## In short\nBe brief.\n")

    assert role.prompt("system").endswith("## In short\nBe brief.")


def test_a_role_may_judge_and_not_debate() -> None:
    role = parse_role("umpire", "\n".join(f"# {name}\nDo it." for name in JUDGE_PROMPTS))

    assert role.can_judge
    assert not role.can_debate


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
        ("", "lacks sections: clarify, critique, propose, refine, summarize, system"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(text: str, wrong: str) -> None:
    with pytest.raises(RoleFileError, match=r"roles/lawyer\.md ") as error:
        parse_role("lawyer", text)

    assert wrong in str(error.value)


def test_two_roles_cannot_go_by_one_name() -> None:
    lawyer, judge = parse_role("lawyer", f"aliases: counsel\n{DEBATER}"), parse_role("counsel", DEBATER)

    with pytest.raises(RoleFileError, match="takes the name counsel, which is lawyer's already"):
        roles._index([lawyer, judge])
