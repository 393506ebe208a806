"""Documents of a debate: what each is as a source, by its number."""

from parley.orchestrator.engine.documents import Documents
from parley.orchestrator.model.sources import place_of
from parley.runtime.held_texts import hold_text
from parley.v1.source_pb2 import Finding, Findings, Source

URL = "https://example.org/page?long=1"


def test_what_is_found_follows_the_documents_that_were_given_as_sources() -> None:
    given = Documents([("docs/a.md", hold_text("Otters float."))])
    page = Finding(source=Source(title="Page", url=URL), text="Dams hold.")
    tool = Finding(source=Source(tool="wiki/search"), text="Otters dive.")
    found, _ = given.with_findings(Findings(findings=[page]))
    found, _ = found.with_findings(Findings(findings=[tool]))
    assert [(each.number, place_of(each)) for each in given.sources] == [(1, "docs/a.md")]
    assert [(each.number, each.title, place_of(each)) for each in found.sources] == [
        (1, "", "docs/a.md"),
        (2, "Page", URL),
        (3, "", "wiki/search"),
    ]
    assert len(found.texts) == 3
