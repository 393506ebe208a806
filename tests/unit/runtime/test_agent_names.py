"""Names in place of letters, in what people read."""

import pytest

from parley.runtime.agent_names import Names, join_words
from parley.v1.agent_pb2 import Agent

NAMES = Names(
    [Agent(id="ada", name="Ada"), Agent(id="simple", name="Simplicity Advocate"), Agent(id="cy", name="Cy")],
    Agent(id="judge", name="Judge"),
)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("As agent A says, agent B's queue is slow.", "As Ada says, Simplicity Advocate's queue is slow."),
        ("Agents A, B and C agree.", "Ada, Simplicity Advocate and Cy agree."),
        ("agents A or C", "Ada or Cy"),
        ("agent B (Simplicity Advocate) has won", "Simplicity Advocate has won"),
        ("agents A and B (Simplicity Advocate)", "Ada and Simplicity Advocate"),
        ("agent A (Cy), Ada (Ada), agent D ()", "Ada (Cy), Ada (Ada), agent D ()"),
        ("agent A, I think", "Ada, I think"),
        ("**Issue B.2** (severity 7)", "**Issue 2 of Simplicity Advocate** (severity 7)"),
        (
            "B.1, B.2 and C.3",
            "issue 1 of Simplicity Advocate, issue 2 of Simplicity Advocate and issue 3 of Cy",
        ),
        ("See issue \t B.2.", "See issue 2 of Simplicity Advocate."),
        ("A.1C.2, B.12345, reagents A", "A.1C.2, B.12345, reagents A"),
        ("agent D, D.1, agent Bo, AB.1", "agent D, D.1, agent Bo, AB.1"),
        ("Python 3.11, v1.B.2, A.1.2, B.2nd, user agent", "Python 3.11, v1.B.2, A.1.2, B.2nd, user agent"),
        ("option A, plan B", "option A, plan B"),
        ("FA.1 B.23", "FA.1 issue 23 of Simplicity Advocate"),
    ],
)
def test_letters_of_agents_become_names_and_nothing_else_does(written: str, read: str) -> None:
    assert NAMES.put_in(written) == read


def test_letters_become_names_in_every_line_that_has_some_and_other_lines_stay() -> None:
    lines = [f"Agent {letter} is right, not {letter}.1.\r\n\n  no agents, A1\t" for letter in "ABC"]
    read = "\n".join(map(NAMES.put_in, lines))
    assert NAMES.put_in("\n".join(lines)) == read
    assert read.count("issue 1 of ") == 3
    assert read.count("no agents, A1\t") == 3


def test_an_issue_is_called_as_the_caller_says() -> None:
    def name_issue(critic: str, number: int) -> str:
        return "issue 7" if (critic, number) == ("cy", 2) else ""

    assert NAMES.put_in("**Issue C.2** and C.1", name_issue) == "**Issue 7** and issue 1 of Cy"


def test_what_agents_number_is_called_by_its_kind() -> None:
    points = Names([Agent(id="ada", name="Ada"), Agent(id="bo", name="Bo")], Agent(id="judge"), "point")
    assert points.put_in("B.1: no. Point A.2 and point B.2 stand.") == (
        "point 1 of Bo: no. Point 2 of Ada and point 2 of Bo stand."
    )


def test_agents_of_one_name_are_told_apart_by_their_ids() -> None:
    names = Names(
        [Agent(id="a", name="Ada"), Agent(id="b", name="ada"), Agent(id="c")], Agent(id="j", name="J")
    )
    assert [names.of(each) for each in ("a", "b", "c", "j", "gone")] == [
        "Ada (a)",
        "ada (b)",
        "c",
        "J",
        "gone",
    ]


def test_an_agent_whose_name_reads_as_the_letter_of_another_goes_by_its_id() -> None:
    first, second = Agent(id="first", name="Agent B"), Agent(id="second", name="Agent A")
    names = Names([first, second, Agent(id="cy", name="Agent C")], Agent(id="judge", name="A.1"))
    assert [names.of(each) for each in ("first", "second", "cy", "judge")] == [
        "first",
        "second",
        "Agent C",
        "judge",
    ]
    read = names.put_in("Agents A, B and C")
    assert read == "first, second and Agent C"
    assert names.put_in(read) == read


@pytest.mark.parametrize(
    ("name", "said"), [("Judge", "the judge"), ("The judge", "the judge"), ("Ada", "the judge Ada")]
)
def test_a_judge_is_called_one(name: str, said: str) -> None:
    assert Names([], Agent(id="j", name=name)).of_judge("j") == said


def test_words_are_joined_as_in_a_sentence() -> None:
    assert [join_words(list("abc")[:count]) for count in range(4)] == ["", "a", "a and b", "a, b and c"]
