"""Which past debates are recalled, with the real model; the figures are in docs/architecture/memory.md."""

import numpy as np
import pytest

from parley.convergence.models import MiniLm
from parley.memory.debate import search_text
from parley.memory.settings import MemorySettings
from parley.v1.memory_pb2 import PastDebate
from tests.unit.memory.long_answers import LONG
from tests.unit.memory.past_debates import PAST, UNRELATED

FLOOR = MemorySettings.model_fields["recall_floor_percent"].default / 100


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm()


def test_a_question_on_the_same_matter_recalls_its_debate_and_an_unrelated_one_recalls_none(
    model: MiniLm,
) -> None:
    remembered = np.stack(
        [model.embed(search_text(PastDebate(question=q, conclusion=c))) for q, c, _ in PAST]
    )
    for place, (_, _, questions) in enumerate(PAST):
        for question in questions:
            likeness = remembered @ model.embed(question)
            assert likeness.argmax() == place, question
            assert likeness[place] >= FLOOR, question
    for question in UNRELATED:
        assert (remembered @ model.embed(question)).max() < FLOOR, question


def test_a_question_on_any_part_of_a_long_answer_recalls_its_debate(model: MiniLm) -> None:
    remembered = np.stack(
        [model.embed(search_text(PastDebate(question=q, conclusion=c))) for q, c, _ in (*LONG, *PAST)]
    )
    for place, (_, _, questions) in enumerate(LONG):
        for question in questions:
            likeness = remembered @ model.embed(question)
            assert likeness.argmax() == place, question
            assert likeness[place] >= FLOOR, question
