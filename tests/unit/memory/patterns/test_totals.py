from parley.memory.totals import Tally, sum_up


def test_the_id_of_a_debate_that_counts_for_several_kinds_is_kept_once() -> None:
    tally = Tally(at=1, raised=1, taken_up=0, severities=[], critics={})
    read_apart = ["deb", "-1"]
    (one,), (other,) = (sum_up({"".join(read_apart): tally}, []).debates for _ in range(2))
    assert one is other
