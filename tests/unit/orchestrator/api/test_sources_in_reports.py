"""The sources of a debate in its report, and warnings of citations that name none."""

from google.protobuf.timestamp_pb2 import Timestamp

from parley.v1.event_pb2 import Concluded, SourcesListed
from parley.v1.source_pb2 import SOURCE_KIND_DOCUMENT, SOURCE_KIND_PAGE, Source
from tests.unit.orchestrator.api.reports import (
    ANSWERING,
    BEGUN,
    CRITIQUE,
    OUTCOME,
    PROPOSAL,
    REFINEMENT,
    SYNTHESIS,
    WHOLE,
    outline,
    report,
)
from tests.unit.orchestrator.made_logs import make_success

SOURCES = SourcesListed(
    sources=[
        Source(
            number=1,
            kind=SOURCE_KIND_DOCUMENT,
            path="docs/load.md",
            sha256="ab" * 32,
            read_at=Timestamp(seconds=1_800_000_000),
        ),
        Source(
            number=2,
            kind=SOURCE_KIND_PAGE,
            title="Stores | *compared*",
            url="https://stores.example/a?b=1",
            sha256="cd" * 32,
            read_at=Timestamp(seconds=1_800_000_060),
        ),
    ]
)


def test_the_report_lists_sources_with_who_cited_them() -> None:
    text = report(
        *BEGUN,
        SOURCES,
        make_success(PROPOSAL, "Use A [S1]."),
        make_success(CRITIQUE, "A is slow [S1, S1]."),
        make_success(REFINEMENT, "Use B [S1]."),
        ANSWERING,
        make_success(SYNTHESIS, "Use B [S1]."),
        Concluded(outcome=OUTCOME),
    )
    assert "## Sources" in outline(text)
    first, second = (line for line in text.split("\n") if line.startswith(("| S1", "| S2")))
    assert first == (
        "| S1 |  | docs/load.md | 2027-01-15 08:00:00 UTC | abababababab | Ada (round 1), Bo (round 1), The judge (answer) |"
    )
    assert second == (
        "| S2 | Stores \\| \\*compared\\* | https://stores.example/a?b=1 | 2027-01-15 08:01:00 UTC | cdcdcdcdcdcd | no agent |"
    )
    assert "**Warning:**" not in text


def test_a_citation_of_what_does_not_exist_is_a_warning_and_no_source() -> None:
    text = report(*BEGUN, SOURCES, make_success(PROPOSAL, "Use A [S9]."))
    assert "- **Warning:** There is no source S9. It was cited by Ada (round 1)." in text
    assert not [line for line in text.split("\n") if line.startswith("| S9")]
    bare = report(*BEGUN, make_success(PROPOSAL, "Use A [S9]."))
    assert "There is no source S9." in bare
    assert not [line for line in bare.split("\n") if line.startswith("| S")]


def test_only_a_few_of_many_missing_sources_are_named() -> None:
    cited = "".join(f"[S{number}]" for number in range(1, 31))
    text = report(*BEGUN, make_success(PROPOSAL, cited))
    assert text.count("There is no source S") == 20
    assert "**Warning:** 10 more were cited that do not exist, S21 to S30." in text


def test_a_report_without_sources_has_no_section_for_them() -> None:
    assert "## Sources" not in outline(report(*WHOLE))
