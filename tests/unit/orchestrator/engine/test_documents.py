"""Documents of a debate: where each source was found, by its number."""

from parley.orchestrator.engine.documents import Documents
from parley.runtime.held_texts import hold_text
from parley.v1.source_pb2 import Finding, Findings, Source

URL = "https://example.org/page?long=1"


def test_what_is_found_has_its_address_or_tool_as_its_place_after_the_documents_that_were_given() -> None:
    given = Documents([("docs/a.md", hold_text("Otters float."))])
    page = Finding(source=Source(title="Page", url=URL), text="Dams hold.")
    tool = Finding(source=Source(tool="wiki/search"), text="Otters dive.")
    found, _ = given.with_findings(Findings(findings=[page]))
    found, _ = found.with_findings(Findings(findings=[tool]))
    assert given.places == ("docs/a.md",)
    assert found.places == ("docs/a.md", URL, "wiki/search")
    assert len(found.texts) == 3
