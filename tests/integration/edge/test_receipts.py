"""A debate's receipt, and the keys by which it is verified, as files over HTTP."""

from pathlib import Path
from typing import Any

import pytest

from parley.receipts.keys import read_keys
from parley.receipts.verification import verify_receipt
from tests.integration.edge.conftest import Edge
from tests.support.receipts import OLD, pem_of


@pytest.fixture
def orchestrator_settings(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "key.pem").write_text(pem_of(OLD))
    return {"receipt_keys": str(tmp_path / "key.pem")}


async def test_a_receipt_is_a_file_that_the_listed_keys_verify(edge: Edge) -> None:
    debate = await edge.run_debate()
    async with edge.session.get(f"{edge.url}/v1/debates/{debate}/receipt.json") as answer:
        receipt = await answer.text()
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{debate}.receipt.json"'
    async with edge.session.get(f"{edge.url}/.well-known/parley-receipt-keys.json") as answer:
        keys = read_keys(await answer.read())
    assert verify_receipt(receipt, keys).debate_id == debate


async def test_a_receipt_of_a_debate_that_is_not_there_is_an_error_in_json(edge: Edge) -> None:
    async with edge.session.get(f"{edge.url}/v1/debates/deb-20260101-000000-aaaaaaaa/receipt.json") as answer:
        assert (answer.status, (await answer.json())["code"]) == (404, "not_found")
    async with edge.session.get(f'{edge.url}/v1/debates/x"\r\n/receipt.json') as answer:
        assert answer.status == 400
