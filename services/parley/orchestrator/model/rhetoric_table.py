"""The patterns and fallacies of rhetoric that the observer marks, and the words by which it knows them.

In a phrase, `(a|b)` is one of these, `…` anything within the sentence, 60 characters at most, `#` a number. A phrase stands as whole
words, in upper or lower case. The phrases are English. Of fallacies, rather one too few than one too many is named.
"""

from collections.abc import Mapping
from typing import Final

PATTERNS: Final[Mapping[str, tuple[str, ...]]] = {
    "concession": (
        "I (concede|grant|accept|withdraw)",
        "I (was wrong|stand corrected)",
        "I had (proposed|argued|thought|held|preferred|assumed)",
        "(granted|admittedly)",
        "(fair|good) point",
        "(you are|is) right (that|to|about)",
        "my earlier (objection|claim|view|proposal|argument)",
        "(changed my mind|convinced me)",
        "the objection (holds|stands)",
    ),
    "rebuttal": (
        "does not (hold|follow|fit|help|explain)",
        "would not (help|explain|have|hold)",
        "the (objection|argument|claim) … (falls|fails)",
        "is no (counterexample|reason|argument)",
        "on the contrary",
        "(that|this|it) is (wrong|not true|mistaken)",
        "speaks against",
        "(contradicts|is refuted|cannot be right)",
        "the counterargument",
        "I disagree",
    ),
    "synthesis": (
        "(combine|combines|combining)",
        "(bring|brings|bringing) together",
        "taken together",
        "common ground",
        "both proposals",
        "(take|takes|took|taken|taking) over from",
        "(reconcile|reconciles|reconciling)",
        "middle way",
    ),
    "authority": (
        "according to",
        "as recommended by",
        "(advises against|recommends that)",
        "best (practice|practices)",
        "industry (standard|leader|leaders)",
        "experts",
        "(RFC|ISO|NIST)",
        "the (guideline|guidelines|standard|manual|regulator) (says|say|asks|ask|requires|require|demands|demand)",
    ),
    "evidence": (
        "(measured|reproduced|reproduce|observed|confirmed|counted)",
        "(showed|shown|shows that|found|finds that)",
        "(I|we) (tested|tried|checked)",
        "the (data|figures|log|logs|trace|replay|count|survey|study|trial|test|experiment) (show|shows|found|find|finds|give|gives|say|says)",
        "in (the|a|our|that) … (study|trial|pilot|test|benchmark|experiment|prototype|replay)",
        "for (example|instance)",
        "evidence",
        "# (percent|per cent)",
    ),
    "analogy": (
        "(is|are|works|behaves) like",
        "just as",
        "(analogous|analogously|by analogy)",
        "(think|thinking) of it as",
        "the same way (as|that)",
        "as if it were",
        "comparable to",
        "reminds (me|us) of",
    ),
    "qualification": (
        "unless",
        "provided that",
        "only if",
        "except (for|where|when|that|if)",
        "(it depends|depends on whether)",
        "in most cases",
        "(as|so) far as",
        "(roughly|presumably|probably)",
        "not necessarily",
        "limited to",
    ),
}
"""Patterns by name, found by their words."""

SIGNS: Final[Mapping[str, str]] = {
    "technical depth": r"`[^`\n]{1,80}`|\b[a-z]{1,20}_[a-z_]{2,40}\b|\bO\([^()\n]{1,20}\)|\bp9\d\b"
    r"|\d ?(?:ms|µs|[kMGT]i?B|[kMG]?Hz|kPa|kWh?|rps|qps)\b",
    "question": r"\?(?=[\s\"'\u201d\u2019)]|$)",
}
"""Patterns by name, found by signs instead of words, as regular expressions: they are valid in any language."""

FALLACIES: Final[Mapping[str, tuple[str, ...]]] = {
    "ad hominem": (
        "only (a fool|an idiot|idiots|fools)",
        "anyone who (disagrees|doubts)",
        "you (clearly|obviously) (do not|don't) understand",
        "agent … is (incompetent|ignorant|naive|stupid)",
    ),
    "bandwagon": (
        "(everyone|everybody) (knows|does it|uses it|agrees)",
        "since we all agree",
        "because (everyone|everybody|all of us|all agents|we all) (agree|agrees|say so|says so)",
        "(cannot|can't) all be wrong",
        "(nobody|no one) uses … (any more|anymore)",
    ),
    "false dilemma": (
        "there are only two (options|choices|ways|possibilities)",
        "the only alternative is",
        "either we … or we (fail|lose|die)",
        "there is no alternative",
    ),
    "slippery slope": (
        "will inevitably lead to",
        "where (does|will) it end",
        "(open|opens) the floodgates",
        "before (we|you) know it",
    ),
    "straw man": (
        "so (you|they) would have us",
        "what (you|they) really (want|mean)",
        "in effect (you|they) are saying",
    ),
    "unnamed authority": (
        "(experts|scientists|economists|doctors) (all agree|agree|say)",
        "(studies|research) (have shown|has shown|show that|shows that|prove that|proves that)",
        "it is (well known|common knowledge|widely known|generally accepted)",
        "scientifically proven",
        "as we all know",
    ),
    "appeal to tradition": (
        "(have|has) always been done",
        "we have always done it",
        "that is how it has always been",
    ),
    "appeal to emotion": ("think of the children", "blood on (our|your|their) hands", "how can anyone sleep"),
    "appeal to ignorance": (
        "(nobody|no one) has (proven|proved|shown) (otherwise|the opposite)",
        "(cannot|can't) be disproved",
    ),
    "sunk cost": (
        "have (already invested|already spent|invested|spent) (too|so) much",
        "too much has been (invested|spent) to",
    ),
    "circular reasoning": (
        "(true|right|best|correct) because it is (true|right|the best|best|correct)",
        "by definition the (best|right)",
    ),
}
"""Fallacies by name."""
