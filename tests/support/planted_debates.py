"""Arguments of two rounds on ten questions: clean ones, and such as repeat themselves or leave the question.

They are made of sentences that people argue with, of which each perspective has its own for each round.
"""

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final


@dataclass(frozen=True, slots=True)
class Argued:
    """What a debater said on a question, in one round and the next, and what others said in the second."""

    question: str
    before: str
    text: str
    others: tuple[str, ...]


_QUESTIONS: Final = (
    ("Should we keep sessions in Redis or in PostgreSQL?", "Redis", "sessions", "PostgreSQL"),
    ("Should the public API be GraphQL or REST?", "GraphQL", "the public API", "REST"),
    (
        "Should we split the monolith into microservices this year?",
        "microservices",
        "the monolith",
        "modules",
    ),
    (
        "Should mobile clients work offline, with a sync engine?",
        "a sync engine",
        "mobile clients",
        "online forms",
    ),
    (
        "Should we move from our own servers to managed Kubernetes?",
        "managed Kubernetes",
        "our servers",
        "plain machines",
    ),
    (
        "Should we encrypt backups with keys that customers hold?",
        "customer keys",
        "backups",
        "our own key store",
    ),
    (
        "Should the search page use an external search service?",
        "an external service",
        "the search page",
        "database queries",
    ),
    ("Should we rewrite the billing job in Rust?", "Rust", "the billing job", "Python"),
    (
        "Should feature flags live in a vendor's product?",
        "a vendor's product",
        "feature flags",
        "a table of our own",
    ),
    (
        "Should events be stored for ever or for ninety days?",
        "unbounded retention",
        "stored events",
        "ninety days",
    ),
)
_SIDES: Final = (
    (
        (
            "Every request touches {what}, so its latency is what people feel first.",
            "{one} answers from memory, while {other} has to go to disk under load.",
            "At the peaks we expect, queues build up long before anything else breaks.",
            "I would pay for that with a second thing to operate.",
        ),
        (
            "The concern about operating {one} is fair, yet its failure modes are few and well known.",
            "Measuring {what} for a week would settle whether {other} holds the ninety-fifth percentile.",
            "If it does, my objection falls; if not, retrofitting costs us a quarter.",
            "Connection pooling alone does not remove the contention that was described.",
        ),
    ),
    (
        (
            "Our team knows {other} by heart and has never run {one} in anger.",
            "Each new dependency wants upgrades, alerts and somebody who understands it.",
            "{what} is small today, and a boring table is enough for years.",
            "We lose some speed by that, and I accept it.",
        ),
        (
            "The numbers that were named for {what} come from companies a hundred times our size.",
            "A thin interface around {other} keeps the door open without walking through it now.",
            "What convinced me is the argument on peaks, so let us write down a threshold that triggers the change.",
            "Until then nobody has to learn {one} on a Friday night.",
        ),
    ),
    (
        (
            "{what} holds data that an attacker wants, and {one} widens the surface.",
            "Encryption at rest, rotation and audit trails exist in {other} already.",
            "A breach costs more than any slowdown we discuss here.",
            "People may have to log in again more often, which I would accept.",
        ),
        (
            "Nobody has answered who may read {what} while {one} replicates it.",
            "With a private network and short-lived credentials most of my worry about {one} would go.",
            "That is a week of hardening, and it belongs into the estimate of whoever proposes it.",
            "I concede that {other} leaks in its own ways through overly broad grants.",
        ),
    ),
    (
        (
            "Requirements for {what} will change twice before next summer.",
            "{one} decouples the writers from the readers, and {other} ties both to a schema.",
            "Migration paths are cheap when they are planned before the data arrives.",
            "The start takes longer that way, and I think it is worth it.",
        ),
        (
            "A facade was offered as a compromise, and it covers half of what I asked for.",
            "The other half is the format in which {what} is written, since that outlives {one} and {other} alike.",
            "Versioned records cost a field and save a migration weekend.",
            "With them I could go along with starting on {other}.",
        ),
    ),
)
_ELSEWHERE: Final = (
    (
        "Tomatoes ripen best in a sunny corner of the garden. Water them early, remove yellow leaves, and feed the soil with compost every"
        " second week. Basil planted nearby keeps insects away and tastes wonderful on fresh bread."
    ),
    (
        "The goalkeeper saved three penalties last Saturday, and the stadium sang until midnight. A younger striker deserves his chance"
        " in the national squad after scoring twice against the champions."
    ),
    (
        "Mountain weather turns quickly in October, therefore pack wool, a lamp and dry socks. Start hiking before sunrise, leave the ridge"
        " by noon, and tell the warden of the hut which valley you descend through."
    ),
    (
        "A good violin bow balances near the frog, and rosin should be applied sparingly. Beginners practise scales slowly with a metronome,"
        " listening for intonation rather than volume, and rest their shoulders often."
    ),
    (
        "Renaissance painters ground lapis lazuli for their blues, which merchants shipped across the sea. Patrons ordered saints in"
        " ultramarine robes, and apprentices spent months preparing panels with chalk and rabbit glue."
    ),
)


def clean() -> list[Argued]:
    """Forty: each takes its debate further."""
    return [_argue(question, side) for question in range(len(_QUESTIONS)) for side in range(len(_SIDES))]


def list_repeating() -> list[Argued]:
    """Twenty: the argument of the round before, as it was, in another order, with words changed, or with a sentence added."""
    changes = (_verbatim, _shuffle, _reword, _extend)
    told = zip(clean()[::2], cycle(changes), strict=False)
    return [Argued(each.question, each.before, change(each), each.others) for each, change in told]


def list_astray() -> list[Argued]:
    """Twenty: what is said has nothing to do with the question."""
    told = zip(clean()[1::2], islice(cycle(_ELSEWHERE), 20), strict=True)
    return [Argued(each.question, each.before, text, each.others) for each, text in told]


def _argue(question: int, side: int) -> Argued:
    others = tuple(_tell(question, other, 1) for other in range(len(_SIDES)) if other != side)
    return Argued(_QUESTIONS[question][0], _tell(question, side, 0), _tell(question, side, 1), others)


def _tell(question: int, side: int, number: int) -> str:
    _, one, what, other = _QUESTIONS[question]
    sentences = (each.format(one=one, what=what, other=other) for each in _SIDES[side][number])
    return " ".join(each[0].upper() + each[1:] for each in sentences)


def _verbatim(each: Argued) -> str:
    return each.before


def _shuffle(each: Argued) -> str:
    return " ".join(
        sentence.strip() + "." for sentence in reversed(each.before.split(".")) if sentence.strip()
    )


def _reword(each: Argued) -> str:
    words = each.before.split()
    return " ".join("certainly" if place % 12 == 5 else word for place, word in enumerate(words))


def _extend(each: Argued) -> str:
    first = each.text.partition(".")[0]
    return f"{each.before} {first}."
