"""A receipt vouches for one debate: whatever was changed afterwards shows, and where."""

import base64
import json
import random
import re
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

import pytest
from msgspec.structs import replace

from parley.receipts.chain import GENESIS, HASH_FIELD, chain_hash, open_chain
from parley.receipts.envelope import sign_envelope
from parley.receipts.errors import VerificationError
from parley.receipts.keys import create_ring
from parley.receipts.log_file import frame, read_log_file
from parley.receipts.statement import canonical_json, describe_log, digest_answer
from parley.receipts.verification import VerifiedReceipt, verify_answer, verify_log, verify_receipt
from parley.v1.debate_pb2 import DebateSpec, Participant
from parley.v1.event_pb2 import DebateCreated, Event
from tests.support.receipts import NEW, OLD, ring, sign_debate

LOGS = ("panel@1-voting", "arena@1-chosen", "small@1-everything")


@pytest.fixture
def verified() -> VerifiedReceipt:
    return verify_receipt(sign_debate().receipt, ring().keys)


@pytest.mark.parametrize("name", ["panel@1-voting", "arena@1-adversarial", "moderated@1-steered"])
def test_a_receipt_vouches_for_its_log_and_its_answer(name: str) -> None:
    debate = sign_debate(name)
    found = verify_receipt(debate.receipt, ring().keys)
    assert verify_log(found.statement, read_log_file(debate.log_file)) == len(debate.entries)
    verify_answer(found.statement, debate.answer)
    assert found.debate_id == Event.FromString(debate.entries[0]).debate_id


def test_what_follows_the_answer_in_the_log_may_still_come(verified: VerifiedReceipt) -> None:
    debate, signed = sign_debate(), verified.statement.log.sequence
    assert signed < len(debate.entries)
    assert verify_log(verified.statement, debate.entries[:signed]) == signed


def chain_of(*bodies: bytes) -> Sequence[bytes]:
    """The stored bytes of events that hold this, each after the one before."""
    entries, before = [], GENESIS
    for sequence, body in enumerate(bodies, start=1):
        stored = Event(sequence=sequence, debate_id="deb-1").SerializeToString() + body
        before = chain_hash(before, stored)
        entries.append(stored + HASH_FIELD + before)
    return entries


def empty_agents(count: int) -> bytes:
    """An event's creation of a debate, with so many agents of which nothing is known."""
    spec = DebateSpec(agents=[Participant()] * count)
    return Event(debate_created=DebateCreated(spec=spec)).SerializeToString()


@pytest.mark.parametrize("events", [1, 3], ids=["one event", "several events"])
def test_a_log_of_many_empty_fields_is_refused_before_it_is_decoded(events: int) -> None:
    entries = chain_of(*[empty_agents(600_000 // events)] * events)
    with pytest.raises(VerificationError, match=r"more than [\d,]+ fields, and no debate has so many"):
        open_chain(entries)


def test_a_file_of_many_short_events_is_refused_before_they_are_decoded() -> None:
    log = b"".join(map(frame, chain_of(*[b""] * 10_000)))
    with pytest.raises(VerificationError, match=r"more than [\d,]+ events, and no debate has so many"):
        read_log_file(log)


def test_a_receipt_that_is_longer_than_any_is_refused_before_it_is_read() -> None:
    with pytest.raises(VerificationError, match=r"longer than 4,194,304 characters"):
        verify_receipt("[" * 4_194_305, ring().keys)


@pytest.mark.parametrize("name", LOGS)
def test_no_debate_has_as_many_fields_or_events_as_are_refused(name: str) -> None:
    entries = sign_debate(name).entries
    long = [*entries] * (1_100_000 // sum(map(len, entries)) + 1)
    with pytest.raises(VerificationError, match="event 1 stands where event"):  # it is read, and is no chain
        open_chain(read_log_file(b"".join(map(frame, long))))


def changes(content: bytes, count: int, seed: int) -> Sequence[tuple[int, bytes]]:
    """Copies of a file, each with one byte that is another, and the place of that byte."""
    drawn = random.Random(seed)
    found = []
    for _ in range(count):
        place, bits = drawn.randrange(len(content)), drawn.randrange(1, 256)
        found.append((place, content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]))
    return found


def fault_of(receipt: bytes, log: bytes) -> str:
    """What is said of a receipt and the file of a log; empty if all is as it was signed."""
    try:
        verify_log(verify_receipt(receipt.decode(), ring().keys).statement, read_log_file(log))
    except (VerificationError, UnicodeDecodeError) as error:
        return str(error)
    return ""


def test_each_of_100_changed_bytes_of_a_receipt_is_noticed() -> None:
    debate = sign_debate()
    assert not fault_of(debate.receipt.encode(), debate.log_file)
    for place, changed in changes(debate.receipt.encode(), 100, seed=1):
        assert fault_of(changed, debate.log_file), f"byte {place} was changed, and nobody noticed"


def test_each_of_100_changed_bytes_of_a_log_is_noticed_with_the_event_that_has_it() -> None:
    debate = sign_debate()
    ends = list(accumulate(len(frame(each)) for each in debate.entries))
    for place, changed in changes(debate.log_file, 100, seed=2):
        fault = fault_of(debate.receipt.encode(), changed)
        assert fault, f"byte {place} was changed, and nobody noticed"
        number = bisect(ends, place)
        if place >= ends[number] - len(debate.entries[number]):  # and not in the length before it
            assert re.search(rf"\bevent {number + 1}\b", fault), (place, fault)


def test_two_events_that_were_swapped_are_named(verified: VerifiedReceipt) -> None:
    entries = list(sign_debate().entries)
    entries[4], entries[5] = entries[5], entries[4]
    with pytest.raises(VerificationError, match=r"^event 6 stands where event 5 should be$"):
        verify_log(verified.statement, entries)


def test_an_event_that_was_left_out_is_named(verified: VerifiedReceipt) -> None:
    entries = list(sign_debate().entries)
    del entries[7]
    with pytest.raises(VerificationError, match=r"^event 9 stands where event 8 should be$"):
        verify_log(verified.statement, entries)


def rewritten(entries: Sequence[bytes], place: int, event: Event) -> list[bytes]:
    """A log in which one event is another, with all hashes from there on computed anew, as a forger would."""
    made, before = list(entries[:place]), entries[place - 1][-32:]
    for entry in (event.SerializeToString(), *(each[:-34] for each in entries[place + 1 :])):
        before = chain_hash(before, entry)
        made.append(entry + HASH_FIELD + before)
    return made


def test_a_log_that_was_written_anew_from_one_event_on_is_not_the_signed_one(
    verified: VerifiedReceipt,
) -> None:
    entries, last = sign_debate().entries, verified.statement.log.sequence
    event = Event.FromString(entries[last - 1][:-34])
    event.concluded.outcome.description = "The other store."
    with pytest.raises(VerificationError, match=f"first {last} events are not those that were signed"):
        verify_log(verified.statement, rewritten(entries, last - 1, event))


def test_a_log_that_ends_before_the_answer_is_not_enough(verified: VerifiedReceipt) -> None:
    with pytest.raises(VerificationError, match="ends with event 9, and the receipt is about"):
        verify_log(verified.statement, sign_debate().entries[:9])


def test_another_debates_log_is_not_enough(verified: VerifiedReceipt) -> None:
    with pytest.raises(VerificationError, match="the log of 'deb-"):
        verify_log(verified.statement, sign_debate("panel@1-merge").entries)


def test_another_answer_is_not_the_signed_one(verified: VerifiedReceipt) -> None:
    with pytest.raises(VerificationError, match="not the answer that was signed"):
        verify_answer(verified.statement, sign_debate().answer + " ")


def test_an_event_of_another_debate_after_the_signed_ones_is_named(verified: VerifiedReceipt) -> None:
    entries = sign_debate().entries
    event = Event.FromString(entries[-1][:-34])
    event.debate_id = "deb-20260101-000000-aaaaaaaa"
    with pytest.raises(VerificationError, match=f"event {len(entries)} is of another debate"):
        verify_log(verified.statement, rewritten(entries, len(entries) - 1, event))


def test_a_signer_who_signed_another_answer_than_the_logs_is_found_out(verified: VerifiedReceipt) -> None:
    other = replace(verified.statement, answer=digest_answer("The other store."))
    with pytest.raises(VerificationError, match="not the answer that was signed"):
        verify_log(other, sign_debate().entries)


def test_a_signer_who_signed_less_than_the_debate_is_found_out(verified: VerifiedReceipt) -> None:
    entries = sign_debate().entries
    other = replace(verified.statement, log=describe_log(entries[:9]))
    with pytest.raises(VerificationError, match="event 9 does not conclude the debate"):
        verify_log(other, entries)


@pytest.mark.parametrize("name", ["_type", "predicateType"])
def test_another_statement_that_the_same_key_signed_is_no_receipt(name: str) -> None:
    statement = json.loads(base64.b64decode(json.loads(sign_debate().receipt)["payload"]))
    statement[name] = "https://slsa.dev/provenance/v1"
    with pytest.raises(VerificationError, match="is no receipt of a debate"):
        verify_receipt(sign_envelope(canonical_json(statement), OLD), ring().keys)


def test_a_receipt_that_was_made_before_a_rotation_verifies_after_it() -> None:
    after = create_ring([NEW, OLD])
    assert verify_receipt(sign_debate(key=OLD).receipt, after.keys).key.id == after.keys[1].id
    assert verify_receipt(sign_debate(key=NEW).receipt, after.keys).key.id == after.keys[0].id


def test_a_receipt_of_a_revoked_key_says_so() -> None:
    revoked = create_ring([NEW, OLD], [ring(OLD).keys[0].id])
    with pytest.raises(VerificationError, match="was revoked"):
        verify_receipt(sign_debate(key=OLD).receipt, revoked.keys)


def test_a_receipt_of_a_stranger_is_refused() -> None:
    with pytest.raises(VerificationError, match="which is not known; known: "):
        verify_receipt(sign_debate(key=NEW).receipt, ring(OLD).keys)


def test_a_receipt_that_names_the_key_of_another_is_refused() -> None:
    envelope = json.loads(sign_debate(key=NEW).receipt)
    envelope["signatures"][0]["keyid"] = ring(OLD).keys[0].id
    forged = json.dumps(envelope, sort_keys=True, separators=(",", ":")) + "\n"
    with pytest.raises(VerificationError, match="its signature is not that of the key"):
        verify_receipt(forged, create_ring([OLD, NEW]).keys)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no signed envelope"),
        ("[]", "no signed envelope"),
        ("{}", "no signed envelope"),
        ('{"signatures":[1]}', "no signed envelope"),
        (
            '{"payload":"e30=","payloadType":"text/plain","signatures":[{"keyid":"a","sig":""}]}',
            "is of the type 'text/plain'",
        ),
        ('{"payload":1,"payloadType":"a","signatures":[{"keyid":"a","sig":""}]}', "no signed envelope"),
        (
            '{"payload":"\u00fc","payloadType":"a","signatures":[{"keyid":"a","sig":""}]}',
            "no signed envelope",
        ),
        ('{"payload":"","payloadType":"a","signatures":[{"keyid":NaN,"sig":""}]}', "no signed envelope"),
        ("[" * 100_000, "no signed envelope"),
    ],
)
def test_a_text_that_is_no_receipt_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        verify_receipt(text, ring().keys)


def test_a_receipt_that_another_program_has_written_anew_is_refused() -> None:
    pretty = json.dumps(json.loads(sign_debate().receipt), indent=2)
    with pytest.raises(VerificationError, match="its JSON is not written as"):
        verify_receipt(pretty, ring().keys)


def test_the_statement_is_written_as_rfc_8785_says() -> None:
    statement = base64.b64decode(json.loads(sign_debate("arena@1-adversarial").receipt)["payload"])
    # Of these texts and numbers, sorted keys without white space and escapes are the same as RFC 8785.
    again = json.dumps(json.loads(statement), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert statement.decode() == again


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"\x0a\x05abc", "the file ends within event 1"),
        (b"\x0a", "no event 1 begins at byte 0"),
        (b"\x0a\x80\x00", "no event 1 begins at byte 0"),
        (b"\x0a\xff\xff\xff\xff\xff\xff", "no event 1 begins at byte 0"),
        (b"not a log", "no event 1 begins at byte 0"),
        (b"\x0a\x01a\x12", "no event 2 begins at byte 3"),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_words(content: bytes, why: str) -> None:
    with pytest.raises(VerificationError, match=why):
        read_log_file(content)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 300_000])
def test_the_file_of_a_log_is_read_as_it_was_written(size: int) -> None:
    entries = [bytes(size), b"x"]
    assert read_log_file(b"".join(map(frame, entries))) == entries
