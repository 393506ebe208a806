import pytest

from parley.convergence.reading import accord, contradiction

CONTRADICTIONS = [
    # question, one, other, what the reason begins with
    ("Should we cache?", "Yes, cache the results.", "No, do not cache anything.", "opposite answers"),
    ("Should we cache?", "Add a cache.", "A cache isn't needed.", "opposite answers"),
    ("What about caching?", "Cache the results.", "Never cache the results.", "one denies"),
    ("What about caching?", "Cache the results.", "Avoid caching the results.", "one denies"),
    ("What about caching?", "Cache the results.", "Don\u2019t cache the results.", "one denies"),
    ("Kafka or RabbitMQ?", "Take Kafka.", "Take RabbitMQ.", "different options"),
    ("Kafka or RabbitMQ?", "Kafka, not RabbitMQ.", "RabbitMQ instead of Kafka.", "different options"),
    ("Which of Kafka, RabbitMQ or NATS?", "NATS is enough.", "We want RabbitMQ.", "different"),
    ("Which database?", "Use PostgreSQL for it.", "Use MongoDB for it.", "different names"),
    ("How long may it take?", "At most 5 seconds.", "At most 30 seconds.", "different numbers of seconds"),
    ("How long may it take?", "At most 90 seconds.", "At most 2 minutes.", "different numbers of seconds"),
    ("How many replicas?", "Three replicas.", "Run 5 replicas.", "different numbers of replica"),
    ("How much?", "Spend $5k on it.", "Spend $50k on it.", "different numbers of $"),
    ("What share?", "Give it 10%.", "Give it 20 percent.", "different numbers of %"),
    ("What about prices?", "Raise prices.", "Lower prices.", "opposite words"),
    ("What about prices?", "Raise prices.", "Keep prices unchanged.", "opposite words"),
    (
        "How should it be rolled out?",
        "Roll it out step by step.",
        "Release it all at once.",
        "opposite words",
    ),
    ("Who should make it?", "Build it in-house.", "Buy it from a vendor.", "opposite words"),
]

AGREEMENTS = [
    ("Should we cache?", "Yes, cache the results.", "A cache should be added."),
    ("Should we cache?", "Do not cache.", "There is no need to cache anything."),
    ("Should we cache?", "It is not a mistake to cache.", "Cache the results."),
    ("Should cars be banned?", "Ban cars.", "Cars should not be allowed."),
    ("Kafka or RabbitMQ?", "Choose Kafka rather than RabbitMQ.", "Kafka, because orders must be replayed."),
    ("How long may it take?", "At most 90 seconds.", "Allow 1.5 minutes at most."),
    ("How often?", "Test it weekly.", "Test it once a week."),
    ("Build or buy?", "Buy it.", "Purchase an off-the-shelf product."),
]

NEITHER = [
    ("Which database?", "Use PostgreSQL with Redis beside it.", "PostgreSQL alone is enough."),
    ("Which database?", "Use PostgreSQL, not MongoDB.", "Choose PostgreSQL."),
    ("How many replicas?", "Three replicas.", "Use 3 replicas in two zones."),
    ("How long?", "Wait 5 seconds.", "Keep three copies."),
    ("How to be faster?", "Move the index to memory.", "Stream the first hits."),
]


@pytest.mark.parametrize(("question", "one", "other", "reason"), CONTRADICTIONS)
def test_stands_that_cannot_both_hold_are_told_apart_with_the_reason(
    question: str, one: str, other: str, reason: str
) -> None:
    assert (contradiction(question, one, other) or "").startswith(reason)
    assert contradiction(question, other, one) is not None


@pytest.mark.parametrize(("question", "one", "other"), AGREEMENTS)
def test_one_explicit_answer_in_other_words_is_an_accord(question: str, one: str, other: str) -> None:
    assert contradiction(question, one, other) is None
    assert accord(question, one, other)
    assert accord(question, other, one)


@pytest.mark.parametrize(("question", "one", "other"), NEITHER)
def test_stands_that_go_together_are_no_contradiction(question: str, one: str, other: str) -> None:
    assert contradiction(question, one, other) is None


@pytest.mark.parametrize("text", ["", " ", "?", "- 5 %", "...", "$", "no", "or or or", "\u2014", "1. 2. 3."])
def test_any_text_can_be_read(text: str) -> None:
    assert contradiction(text, text, "Use Kafka.") is None or True
    assert contradiction("Kafka or RabbitMQ?", text, text) is None
    assert not accord("Which one?", text, "Use Kafka.")
