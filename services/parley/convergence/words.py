"""The words that reading a stand turns on: what denies, what opposes what, what carries no meaning of its own."""

import re
from typing import Final

__all__ = [
    "AFTERTHOUGHT",
    "CLAUSE",
    "DENIERS",
    "HEAD_DENIERS",
    "LIGHT",
    "NUMBER_WORDS",
    "OPPOSITES",
    "PHRASES",
    "SECONDS",
    "TOKEN",
    "side_words",
    "stem",
]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOKEN: Final = re.compile(
    r"[$€£]?\d+(?:[.,]\d+)*[a-z%]*|[A-Za-z][A-Za-z0-9+#]*(?:[-'\u2019./][A-Za-z0-9]+)*|%"
)

AFTERTHOUGHT: Final = re.compile(
    r"[\s,;]+(?:because|since|so that|so as to|in order to|to survive|as long as|given that|due to|which would|who)\b[^.;:]*",
    re.IGNORECASE,
)
"""Reasons. They say why and name things that are not chosen, so that they are left out."""

CLAUSE: Final = re.compile(
    r"(?<!\d)[.;:,](?!\d)|[.;:,](?=\s|$)|[()\u2013\u2014]|\s-\s|\bbut\b|\bwhile\b|\bwhereas\b|\balthough\b|\bthough\b|\bunless\b"
    r"|\band\s+(?=not\b|never\b|do\s+not\b|don['\u2019]t\b|avoid\b)"
    r"|(?=\brather\s+than\b)|(?=\binstead\s+of\b)|(?=\band\s+against\b)|(?=\bwithout\b)|(?=\bregardless\s+of\b)",
    re.IGNORECASE,
)
"""Where one clause ends and the next begins; a denial reaches over its own clause and no further."""

PHRASES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), word)
    for pattern, word in (
        (
            r"\bstep[- ]by[- ]step\b|\bin stages\b|\bin phases\b|\bone (?:\w+ )?at a time\b|\bbit by bit\b",
            "gradually",
        ),
        (
            r"\b(?:all )?at once\b|\bat the same time\b|\bbig[- ]bang\b|\bin one go\b|\bin one step\b",
            "abruptly",
        ),
        (r"\bas (?:it is|they are|is)\b|\bstatus quo\b", "unchanged"),
        (r"\bat home\b|\bfrom home\b|\bfrom anywhere\b", "remotely"),
        (r"\bin[- ]house\b|\bourselves\b|\bour own\b", "inhouse"),
        (r"\boff[- ]the[- ]shelf\b|\bthird[- ]party\b|\bfrom a vendor\b", "vendor"),
        (r"\bon[- ]prem(?:ises?)?\b|\bour own data cent(?:er|re)s?\b", "onpremises"),
        (r"\bdaily\b|\b(?:once )?(?:a|each|every) day\b", "every 1 days"),
        (r"\bweekly\b|\b(?:once )?(?:a|each|every) week\b", "every 7 days"),
        (r"\bmonthly\b|\b(?:once )?(?:a|each|every) month\b", "every 30 days"),
        (r"\byearly\b|\bannual(?:ly)?\b|\b(?:once )?(?:a|each|every) year\b", "every 365 days"),
        (r"\b(?:keep|leave)\b(?=(?: \w+){1,4} (?:out|away)\b)", "avoid"),
        (r"\bnot only\b", "also"),
        (r"\bno longer\b", "not"),
        (r"\bno doubt\b|\bwithout (?:exception|delay|doubt|question|hesitation)\b|\bnothing but\b", "surely"),
        (r"\bn['\u2019]t\b", " not"),
        (r"\bcannot\b|\bcan['\u2019]t\b|\bwon['\u2019]t\b", "can not"),
        (r"\b(do|does|did|is|are|was|were|should|would|could|must|need|has|have)n['\u2019]t\b", r"\1 not"),
    )
)
"""Turns of phrase that stand for one word; replaced before anything is split."""

DENIERS: Final = _words("""not never no nobody none nothing neither nor avoid hurt harm damage against reject oppose refuse stop abandon instead rather without
    unnecessary needless needlessly overkill premature unjustified unwise wrong mistake harmful
    unacceptable pointless hardly unneeded regardless resist discourage""")
"""Each one turns its clause round; two of them turn it back."""

HEAD_DENIERS: Final = frozenset({"instead", "rather", "without", "regardless"})
"""Deniers only at the head of a clause (`instead of X`); elsewhere (`add an index instead`) they deny nothing."""

LIGHT: Final = _words("""a an the this that these those it its we us our you your they them their i my me he she one all any some each
    every is are was were be been being am do does did done has have had having will would shall should can could may
    might must ought of in on at to for from by with as into onto over under about than then so if or and nor not no yes
    use using used choose choosing pick select take make making add put get let go run want adopt need needs right best
    better good choice option approach worth way here there now just also very more most much many such only own same
    other than both either up out off down who which what when where how why up because since please would like think
    believe recommend recommended propose suggest position answer clear clearly strongly first best-suited suited
    enough well still even rather instead surely through per whether between them itself everything anything something
    thing things case cases fits fit serve serves work works""")
"""Words too common to tell one stand from another."""

OPPOSITES: Final[tuple[tuple[str, str], ...]] = (
    (
        "keep stay remain retain preserve unchanged maintain leave hold freeze",
        "split replace remove migrate move switch break rewrite raise lower increase reduce cut drop convert decompose",
    ),
    (
        "increase raise grow expand higher larger extend lengthen",
        "decrease reduce lower cut shrink smaller shorten",
    ),
    ("more", "fewer less"),
    (
        "allow permit enable free open legalise legalize",
        "forbid ban prohibit block disable disallow outlaw close",
    ),
    ("mandatory require compulsory obligatory enforce", "optional voluntary"),
    ("always", "never"),
    ("accept approve support endorse favour favor", "reject oppose decline"),
    ("build inhouse", "buy vendor purchase outsource"),
    (
        "centralise centralize central centralised centralized",
        "decentralise decentralize distributed decentralised",
    ),
    ("synchronous synchronously sync", "asynchronous asynchronously async"),
    ("gradually gradual incremental incrementally phased", "abruptly everybody everyone immediately"),
    ("public", "private"),
    ("open-source", "proprietary"),
    ("sql relational", "nosql"),
    ("monorepo", "polyrepo multirepo"),
    ("manual manually", "automatic automatically automated automate"),
    ("before", "after"),
    ("early earlier sooner", "late later delay postpone wait"),
    ("strict strictly", "lenient loose relaxed"),
    ("stateful", "stateless"),
    ("remote remotely", "office onsite"),
    ("cloud", "onpremises"),
    ("vertical vertically", "horizontal horizontally"),
    ("internal internally", "external externally"),
    ("single", "multiple several"),
    ("static statically", "dynamic dynamically"),
    ("start begin launch", "stop end cancel"),
    ("safe secure", "unsafe insecure dangerous"),
    ("pull", "push"),
    ("encrypt encrypted", "plaintext unencrypted"),
)
"""Words of which one side is not taken together with the other."""

NUMBER_WORDS: Final = {
    "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0, "six": 6.0, "seven": 7.0, "eight": 8.0, "nine": 9.0,
    "ten": 10.0, "eleven": 11.0, "twelve": 12.0, "fifteen": 15.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0,
    "fifty": 50.0, "sixty": 60.0, "ninety": 90.0, "hundred": 100.0, "thousand": 1000.0, "single": 1.0, "half": 0.5,
}  # fmt: skip

SECONDS: Final = {
    "ms": 0.001, "millisecond": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0, "h": 3600.0,
    "hour": 3600.0, "day": 86400.0, "week": 604800.0,
}  # fmt: skip
"""Units of time, so that `90 seconds` and `1.5 minutes` are the same amount."""


def stem(word: str) -> str:
    """A rough stem: enough to bring `requires`, `required` and `requiring` together."""
    word = word.lower().replace("\u2019", "'")
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ingly", "edly", "ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


def side_words(side: str) -> frozenset[str]:
    """The stems of one side of a pair of opposites."""
    return frozenset(stem(word) for word in side.split())
