"""Claims that need a citation: sentences of a proposal that state a fact of the world and name no source. Pure functions.

Found by English words and by figures. What a proposal wants, assumes, defines, decides or calculates is no such claim, and neither is
what the question says. How many are found and how many of those are claims is measured in tests/unit/orchestrator/model/test_citations.py.
"""

import re
from collections.abc import Collection
from typing import Final

from parley.orchestrator.model.named_sources import MAX_CHARACTERS, MAX_READ, split_sentences
from parley.orchestrator.model.sources import CITATION

MAX_CLAIMS: Final = 5

_SOURCE: Final = re.compile(
    r"https?://|\]\(|\[\^?\d{1,3}\]|\([A-Z][^()\n]{0,60}\b(?:19|20)\d\d[a-z]?\)|\bdoi:|\b(?:RFC|ISO|IEEE|PEP|arXiv)[ :]?\d"
    rf"|{CITATION}"
    r"|\b[Aa]ccording to (?:the |its )?[\"'A-Z`]|\w\.(?:md|txt|pdf|csv|html)\b|\b(?:§|section )\d"
)
_NUMBER_WORDS: Final = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12,
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "eighty": 80, "ninety": 90,
    "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9,
}  # fmt: skip
_NUMBER: Final = rf"(?:\d[\d.,]{{0,15}}|(?:{'|'.join(_NUMBER_WORDS)}))"
_APPEAL: Final = re.compile(
    r"\b(?:studies|study|research(?:ers)?|surveys?|benchmarks?|statistics|experts?|experiments?|reports|analysts|measurements|data|trials?"
    r"|pilots?|engineers|practitioners|literature|evidence)"
    r"\s+(?:\w+\s+){0,6}?(?:shows?|showed|shown|suggests?|suggested|finds?|found|says?|agrees?|proves?|proved|indicates?|indicated"
    r"|confirms?|confirmed|reports?|reported|measured|estimates?|estimated)\b"
    r"|\b[A-Z]\w+ (?:measured|found|reported|showed|estimated) that\b|\baccording to (?:many|most|some|several|experts)\b"
    r"|\b(?:has|have) been (?:shown|proven|proved|measured|demonstrated|found)\b|\bit is (?:well[ -])?(?:known|established) that\b"
    r"|\b(?:several|many|some|most|numerous) (?:\w+ ){1,4}(?:have|had)\b",
    re.IGNORECASE,
)
_STRONG: Final = re.compile(
    rf"\b{_NUMBER}[ \u00a0\u202f]?(?:%|percent\b|per cent\b)|\b{_NUMBER}[ ]?(?:x\b|\u00d7|-fold\b|times (?:as|the|\w+er|more|less)\b)"
    r"|[$€£][ ]?\d|\d (?:euros?|dollars?|pounds?)\b"
    r"|\b(?:twice|(?:(?:to|can|could|may|not|would) )double|double[ds]|triple[ds]?|halve[ds]?|by half|half (?:of|the|as|a)|an? (?:third|quarter|fifth|tenth) of|two thirds)\b"
    rf"|\b(?:about|around|roughly|nearly|almost|approximately|some|over|(?:more|less|fewer|better|worse) than|between|under) (?:an? |one )?{_NUMBER}\b"
    rf"|\b(?:less|more) than an? \w+|\b{_NUMBER}(?: to |[-\u2013]){_NUMBER}\b"
    r"|\b(?:usually|typically|generally|commonly|on average|average|typical|tend to)\b"
    r"|(?:^|[,;:] |\b(?:that|and|but|in|for) )most\b"
    r"|\b(?:in|since|by|until|of|end of|January|February|March|April|May|June|July|August|September|October|November|December) (?:19|20)\d\d\b"
    r"|\b(?:last|past) (?:year|month|decade|\w+ years)\b"
    r"|\b(?!rather|other)\w{3,}er than\b|\b(?:more|less|fewer) (?:\w+ ){0,3}than\b|\bas \w+ as\b"
    r"|\b(?:is|are|was|were|remains?) (?:still )?(?:the )?(?:\w{2,}est|most \w+|main|leading)\b"
    r"|^[A-Z]\w+(?:, [A-Z]\w+)* and [A-Z]\w+ (?:both|all|each)\b",
    re.IGNORECASE,
)
"""A share, a factor, a price, a rough figure, a range, a rule of thumb, a date, a comparison: whoever says it knows it from somewhere."""
_COUNT: Final = re.compile(rf"\b(?<!every ){_NUMBER}[ \u00a0\u202f][a-z]+", re.IGNORECASE)
_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z](?!\w*day\b)\w*|^[A-Z]\w*[A-Z0-9]")
_OWN_THING: Final = re.compile(
    rf"^(?:the|each|every|this|these|that|those|its|their|all|both|no|an?|one|nobody|everybody|{_NUMBER})\b",
    re.IGNORECASE,
)
"""How sentences begin that describe what is proposed, such as `Each shard has …`."""
_DO: Final = (
    r"add|adopt|aim|allow|ask|assign|automate|avoid|begin|build|buy|change|charge|check|choose|compare|consider|create|cut|define|deploy|do"
    r"|enable|encrypt|ensure|expose|give|hire|hold|implement|include|install|introduce|invest|keep|let|limit|list|log|make|measure|meet"
    r"|migrate|monitor|move|never|offer|open|partition|pay|pick|plan|prefer|provide|publish|put|raise|reduce|rent|replace|require|review|roll"
    r"|run|schedule|sell|send|set|shard|ship|split|start|stop|store|switch|take|test|track|train|treat|try|use|validate|verify|wait|write"
)
_OWN_WORDS: Final = re.compile(
    rf"^(?:{_DO})\b|^[^,]{{0,60}}, (?:{_DO})\b|^an? (?:\w+ ){{1,2}}\w+s when\b"
    r"|^(?:if|unless|when|whenever|as long as|as soon as|once|should|suppose|assum\w+|provided|where|until|by 20\d\d|by an? \w+ I"
    r"|in (?:the first |week|month|phase|year|quarter|step|stage))\b"
    r"|\b(?:should|must|shall|will|would|may|might|let|assum\w+|suppos\w+|estimat\w+|if|unless|once (?:the|an?|all|it|they)|at most|we|our|us|I|my|you|your|as long as"
    r"|propos\w+|recommend\w*|aims?|targets?|goals?|budgets?|thresholds?|plans?|nobody|no one)\b"
    r"|\b(?:better|worse|best|worst|matters?|important|worth|valuable|wrong|simpler|easier|harder|cleaner|clearer|riskier|nicer|kinder)\b"
    r"|\b(?:means? that|is whatever|is (?:an?|one|what) \w+ (?:of|that|who|which)\b(?! .*\d)|is one that)",
    re.IGNORECASE,
)
"""What is wanted, done, conditional, defined or judged by whoever writes."""
_CONDITION: Final = re.compile(r"^(?:if|unless|until|once|when)\b", re.IGNORECASE)
"""How sentences begin that wait for evidence, rather than appeal to it."""
_CALCULATION: Final = re.compile(
    r"=|\d ?[/\u00d7*+] ?\d|\bcomes? to\b|\bmakes? (?:about )?\d|\bmeans? (?:about )?\d|^(?:so|thus|hence|therefore|in total)\b"
    r"|^(?:that|this|it|which) (?:is|makes|gives|means|comes|leaves|adds)\b|\bof what\b|\bin total\b|\bplus\b",
    re.IGNORECASE,
)
_FIGURE: Final = re.compile(
    rf"({_NUMBER})\b(?: (hundred|thousand|million|billion)\b)?[ \u00a0]?([a-z]{{0,20}})", re.IGNORECASE
)
_MAX_FIGURES: Final = 12
"""Figures of a sentence that are tried as factors and product."""
_LARGE: Final = 1000
"""From here on a figure is taken for that of the question without looking at what it counts."""


def claims_to_cite(text: str, said: str = "") -> tuple[str, ...]:
    """Return the sentences that need a citation and have none, in order, at most five, each once and of 300 characters at most.

    Such a sentence appeals to evidence that it does not name ("studies show"), or gives a figure, a date or a comparison without a
    sign that it is wanted, decided, conditional, calculated, or among what was `said` by the person who asks.
    """
    known = frozenset(_figures(said[:MAX_READ]))
    names = frozenset(_NAME.findall(f"{said[:MAX_READ]} {text[:MAX_READ]}"))
    found = dict.fromkeys(
        sentence[:MAX_CHARACTERS]
        for sentence in split_sentences(text[:MAX_READ])
        if not sentence.endswith("?") and not _SOURCE.search(sentence) and _is_claim(sentence, known, names)
    )
    return tuple(found)[:MAX_CLAIMS]


def _is_claim(sentence: str, known: Collection[tuple[float, str]], names: Collection[str]) -> bool:
    if _APPEAL.search(sentence):
        return _CONDITION.search(sentence) is None
    if _OWN_WORDS.search(sentence) or _CALCULATION.search(sentence) or _follows(_figures(sentence), known):
        return False
    return bool(_STRONG.search(sentence) or _has_figure(sentence, names))


def _has_figure(sentence: str, names: Collection[str]) -> bool:
    """Return whether it gives a plain figure of something that has a name, and does not begin with what is proposed."""
    if not _COUNT.search(sentence) or _OWN_THING.search(sentence):
        return False
    return sentence.split(maxsplit=1)[0] in names or _NAME.search(sentence) is not None


def _figures(text: str) -> list[tuple[float, str]]:
    """Return the figures of a text, in digits or words, each with the word that follows it."""
    found = []
    for figure, scale, word in _FIGURE.findall(text):
        number = _to_number(figure.lower()) * _NUMBER_WORDS.get(scale.lower(), 1)
        found.append((number, word.lower()[:4]))
    return found


def _to_number(figure: str) -> float:
    digits = figure.rstrip(".,").replace(",", "")
    return float(digits) if digits.count(".") < 2 and digits[0].isdigit() else _NUMBER_WORDS.get(figure, 0)


def _follows(figures: Collection[tuple[float, str]], known: Collection[tuple[float, str]]) -> bool:
    """Return whether a figure is known, or is the product of two others, of which one at least stands in the same sentence."""
    told = [number for number, _ in known]
    if any((each[1] and each in known) or (each[0] >= _LARGE and each[0] in told) for each in figures):
        return True
    numbers = [number for number, _ in figures][:_MAX_FIGURES]
    return any(
        abs(one * other - product) <= product / 100
        for product in numbers
        if product >= 10
        for one in numbers
        for other in [*numbers, *told[:_MAX_FIGURES]]
        if product not in {one, other}
    )
