"""Addresses that name no page of the console."""

import pytest
from playwright.async_api import Page, expect


@pytest.mark.parametrize("address", ["/debates/%E0%A4%A", "/memory/%ff"])
async def test_an_address_that_cannot_be_read_shows_that_there_is_no_such_page(
    page: Page, address: str
) -> None:
    await page.goto(address)
    await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    await page.get_by_role("link", name="All debates").last.click()
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()
