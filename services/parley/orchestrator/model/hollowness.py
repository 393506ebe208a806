"""How hollow an agreement is: agreed on with little evidence, in each other's words, before critics without an objection. Pure functions.

Seven features of the agents' texts and of the critiques of the round are weighed by a logistic regression:

    p = 1 / (1 + exp(-(b + Σ wᵢ·g(fᵢ))))    with g(f) = ln(1 + f) for rates in 100 words, and g(f) = f for shares

Weights and bias were fitted by `python -m tests.bench.fit_trickster` to tests/data/consensus/fit.yaml; docs/benchmarks.md says what they
do on other topics. Numbers and names that stand in the question are not evidence, as anybody can repeat them.
"""

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.rhetoric import MAX_CHARACTERS, count_of, is_english
from parley.v1.critique_pb2 import Critique

MATTERS: Final = 4
"""The severity from which on an issue counts as one that a critic raises in earnest."""


class Features(Struct, frozen=True):
    """What is measured of an agreement. Rates are in 100 words, the mean over the agents; shares are from 0 to 1.

    Attributes:
        figures: Numbers that may have been measured or looked up: of two digits that count or more, as in 54 or 1,450 but not in
            80 or 9,000, and no range, place in a list, round, or `100 %`.
        specifics: Names, identifiers, code, abbreviations and addresses, each once a text.
        reasons: Words by which a reason is given, limited, refuted or granted. None: the texts are not English.
        reports: Verbs that report what has happened, such as `rose` or `measured`. None: as above.
        vagueness: Words that fit any proposal, such as `robust`, or name no person and no amount, such as `people` or `some`. None: as
            above.
        echo: The share of a text's pairs of words that stand in another agent's text too.
        silence: The share of critiques that raise no issue of severity 4 or more. None: there are no critiques.
    """

    figures: float
    specifics: float
    reasons: float | None
    reports: float | None
    vagueness: float | None
    echo: float
    silence: float | None


class Weights(Struct, frozen=True):
    """A number for each feature, in the order of `Features`."""

    figures: float
    specifics: float
    reasons: float
    reports: float
    vagueness: float
    echo: float
    silence: float


WEIGHTS: Final = Weights(-1.57, -0.12, -0.58, -1.24, 2.45, 1.67, 0.00)
BIAS: Final = -0.58
NEUTRAL: Final = Weights(0.53, 0.72, 1.11, 1.34, 1.37, 0.17, 0.72)
"""The mean of each term over the debates fitted to: it replaces a feature that is unknown."""

_WORD: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_LIST_PLACE: Final = re.compile(r"^[ \t]*(?:[-*+#]+[ \t]*)?\d{1,2}[.):][ \t]", re.MULTILINE)
_COUNTED: Final = re.compile(
    r"\b(?:agents?|rounds?|steps?|phases?|options?|issues?|points?|proposals?|sections?|chapters?|parts?|level|tier) \d+",
    re.IGNORECASE,
)
_EMPTY_NUMBER: Final = re.compile(r"(?<![\w.,])(?:100 ?%|24/7|360°?)")
_RANGE: Final = re.compile(r"(?<![\d.,])\d[\d.,]{0,12} ?%? ?(?:to|or|and|-|\u2013|:) ?\d[\d.,]{0,12}")
_NUMBER: Final = re.compile(r"(?<![\w-])\d+(?:[.,:/]\d+)*")
_CODE: Final = re.compile(r"`[^`\n]{1,120}`")
_ADDRESS: Final = re.compile(r"https?://[^\s)>\]]{1,200}|(?<!\w)/[\w-]{1,40}/[\w/.-]{0,80}")
_IDENTIFIER: Final = re.compile(
    r"\b(?:[A-Za-z]{1,30}_[A-Za-z_]{1,40}|[a-z]{1,20}[A-Z][A-Za-z]{0,30}|[A-Z]{2,12}s?|[A-Za-z]{1,12}-?\d[\w.-]{0,12})\b"
)
_NAME: Final = re.compile(r"(?<=[a-z,;)] )(?:the )?([A-Z][a-zà-ÿ]{2,30})\b")
_MAX_NAME_SHARE: Final = 0.12
"""Above this share of words with a capital within sentences, a language gives its nouns one, and they are no names."""
_REASONS: Final = ("concession", "rebuttal", "evidence", "qualification")
_CAUSES: Final = re.compile(
    r"\b(?:because|since|whereas|while|although|so that|if|which is why|for then|otherwise|instead of|rather than|but|yet|until|"
    r"as long as|even|before|after|when)\b",
    re.IGNORECASE,
)
_REPORTS: Final = re.compile(
    r"\b(?:[a-z]{2,12}(?<!ne)ed|was|were|had|did|rose|came|took|found|gave|kept|left|fell|went|saw|said|told|made|began|led|broke|held|"
    r"stood|got|ran|wrote|knew|shown|lost|won|paid|sold|chose|drew|grew)\b"
)
_VAGUE: Final = re.compile(
    r"\b(?:robust|scalab\w{2,4}|seamless\w{0,2}|holistic|comprehensive|balanced?|key|crucial|essential|important|vital|valuable|"
    r"excellent|great|solid|proven|modern|future-proof|forward-looking|sustainable|flexib\w{2,4}|transparent|stakeholders?|foster\w{0,3}|"
    r"empower\w{0,4}|leverag\w{1,3}|ensur\w{1,3}|synerg\w{1,4}|aligned|alignment|consensus|well-rounded|pragmatic|user-friendly|best of both|"
    r"industry standard|best practices?|vibrant|culture|potential|benefits?|opportunit\w{1,3}|strengthen\w{0,3}|optimiz\w{1,3}|"
    r"improv\w{1,5}|simplicity|efficien\w{1,3}|agile|confident|confidence|compelling|natural choice|common ground|fully (?:agree|support)|"
    r"high quality|high performance|strong|carefully|with care|appropriate|meaningful|together"
    # no person and no amount in particular
    r"|people|everybody|everyone|nobody|no one|somebody|some|many|various|several|others|one can|one may|something|anything|"
    r"perhaps|maybe|might|would be|would like|always|never|often|usually|generally|hardly|certainly|clearly|surely|"
    r"gladly|anyway|after all|nice|fine|later on|things?|ways?|somewhat|known to|said to)\b",
    re.IGNORECASE,
)


def features_of(question: str, work: Sequence[Contribution], critiques: Sequence[Contribution]) -> Features:
    """Return the features of an agreement from the agents' present texts and the critiques that the round holds.

    `work` is not empty. Of a text, the first MAX_CHARACTERS are read.
    """
    texts = [each.text[:MAX_CHARACTERS] for each in work]
    known = _tokens(question)
    english = is_english("\n".join(texts))
    lengths = [_length(each) for each in texts]

    def rate(counts: Iterable[int]) -> float:
        return sum(100 * count / length for count, length in zip(counts, lengths, strict=True)) / len(texts)

    return Features(
        figures=rate(_figures(each, known) for each in texts),
        specifics=rate(len(_specifics(each) - known) for each in texts),
        reasons=rate(_reasons(each) for each in texts) if english else None,
        reports=rate(len(_REPORTS.findall(each)) for each in texts) if english else None,
        vagueness=rate(len(_VAGUE.findall(each)) for each in texts) if english else None,
        echo=_echo(question, texts),
        silence=_silence(critiques),
    )


def terms_of(features: Features) -> Weights:
    """Return each feature as it is weighed; an unknown one gets the neutral value."""
    values = []
    for name, value, neutral in zip(
        Features.__struct_fields__, astuple(features), astuple(NEUTRAL), strict=True
    ):
        is_share = name in ("echo", "silence")
        values.append(neutral if value is None else value if is_share else math.log1p(value))
    return Weights(*values)


def hollow_probability(features: Features) -> float:
    """Return how probable it is that the agreement is hollow, 0 to 1."""
    weighed = sum(
        weight * term for weight, term in zip(astuple(WEIGHTS), astuple(terms_of(features)), strict=True)
    )
    return 1 / (1 + math.exp(-(BIAS + weighed)))


def _length(text: str) -> int:
    """Return the length in words, at least one; of a script without blanks between them, about so many."""
    words = _WORD.findall(text)
    return max(len(words), sum(map(len, words)) // 12, 1)


def _tokens(text: str) -> frozenset[str]:
    return frozenset(each.lower() for each in re.findall(r"\w+", text))


def _figures(text: str, known: frozenset[str]) -> int:
    remaining = text
    for empty in (_LIST_PLACE, _COUNTED, _EMPTY_NUMBER, _RANGE):
        remaining = empty.sub(" ", remaining)
    return sum(each not in known and _is_precise(each) for each in _NUMBER.findall(remaining))


def _is_precise(number: str) -> bool:
    return len("".join(filter(str.isdigit, number)).strip("0")) > 1


def _specifics(text: str) -> set[str]:
    found = {each.lower() for pattern in (_CODE, _ADDRESS, _IDENTIFIER) for each in pattern.findall(text)}
    names = [each.lower() for each in _NAME.findall(text)]
    return found | set(names) if len(names) <= _MAX_NAME_SHARE * _length(text) else found


def _reasons(text: str) -> int:
    return count_of(text, _REASONS) + len(_CAUSES.findall(text))


def _echo(question: str, texts: Sequence[str]) -> float:
    """Return the share of pairs of words that another text has too, the mean over the texts; those of the question do not count."""
    asked = _pairs(question)
    pairs = [_pairs(each) - asked for each in texts]
    shares = []
    for place, own in enumerate(pairs):
        others = set[tuple[str, str]]().union(*pairs[:place], *pairs[place + 1 :])
        shares.append(len(own & others) / len(own) if own else 0.0)
    return sum(shares) / len(shares)


def _pairs(text: str) -> set[tuple[str, str]]:
    words = [each.lower() for each in _WORD.findall(text)]
    return set(itertools.pairwise(words))


def _silence(critiques: Sequence[Contribution]) -> float | None:
    structured = [made.critique for made in critiques if made.critique is not None]
    return sum(not _is_objection(each) for each in structured) / len(structured) if structured else None


def _is_objection(critique: Critique) -> bool:
    """Return whether a critic does not agree, or raises something that matters; an issue without a severity does."""
    if critique.HasField("agrees") and not critique.agrees:
        return True
    return any(not each.HasField("severity") or each.severity >= MATTERS for each in critique.issues)
