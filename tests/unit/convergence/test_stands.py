import pytest

from parley.convergence.stands import Stand, sentences


def taken(text: str, position: str = "") -> str:
    return Stand("a", position, text).taken


def test_a_stated_position_is_taken_as_it_is() -> None:
    assert taken("Other words. We should wait.", "Use  Kafka.\n") == "Use Kafka."


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (
            "## Proposal\n\nKafka has a log. RabbitMQ has queues. I recommend Kafka.\n\nIt costs more.",
            "I recommend Kafka.",
        ),
        ("Position: Use Kafka.\n\nWe should also write tests.", "Use Kafka."),
        ("**My recommendation:** use Kafka for orders.\nReasons follow here.", "use Kafka for orders."),
        (
            "One could wait. We should first measure. In the end we should use Kafka.",
            "In the end we should use Kafka.",
        ),
        ("Kafka keeps a log of events. It can be replayed.", "Kafka keeps a log of events."),
        ("Kafka", "Kafka"),
    ],
)
def test_without_a_stated_position_it_is_the_sentence_that_states_one(text: str, position: str) -> None:
    assert taken(text) == position


def test_sentences_leave_out_code_and_markup() -> None:
    text = "# Plan\n- Use Kafka for it.\n- Keep the log short.\n```python\nprint('Not this one at all.')\n```\nThen measure it."
    assert sentences(text) == ["Use Kafka for it.", "Keep the log short.", "Then measure it."]
