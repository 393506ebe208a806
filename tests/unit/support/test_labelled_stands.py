from collections import Counter

from tests.support.labelled_stands import held_out_topics, pairs_of, training_topics, word_overlap


def test_there_are_enough_pairs_of_both_kinds_in_both_halves() -> None:
    for topics in (training_topics(), held_out_topics()):
        same = Counter(pair.same for pair in pairs_of(topics))
        assert same.total() >= 400
        assert 1 / 3 <= same[True] / same.total() <= 2 / 3


def test_the_halves_share_no_topic_and_no_statement() -> None:
    ours, theirs = training_topics(), held_out_topics()
    assert len({each.name for each in (*ours, *theirs)}) == len(ours) + len(theirs)
    assert not {each.question for each in ours} & {each.question for each in theirs}
    statements = [{way for topic in half for ways in topic.stands for way in ways} for half in (ours, theirs)]
    assert not statements[0] & statements[1]


def test_no_pair_is_there_twice() -> None:
    for topics in (training_topics(), held_out_topics()):
        pairs = Counter(frozenset((pair.one.casefold(), pair.other.casefold())) for pair in pairs_of(topics))
        assert all(len(pair) == 2 for pair in pairs)
        assert set(pairs.values()) == {1}


def test_several_languages_are_held_out() -> None:
    languages = {each.language for each in held_out_topics()}
    assert len(languages) >= 5
    assert {each.language for each in training_topics()} == {"en"}


def test_the_overlap_of_words_tells_next_to_nothing() -> None:
    for topics in (training_topics(), held_out_topics()):
        pairs = pairs_of(topics)
        overlaps = {
            same: [word_overlap(p.one, p.other) for p in pairs if p.same is same] for same in (True, False)
        }
        wins = sum((a > b) + (a == b) / 2 for a in overlaps[True] for b in overlaps[False])
        assert 0.4 <= wins / (len(overlaps[True]) * len(overlaps[False])) <= 0.6
        assert max(overlaps[False]) > 0.8
        assert min(overlaps[True]) < 0.1
