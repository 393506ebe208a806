"""THIRD_PARTY.md: all that comes along is listed with a licence that allows it, and nothing of others comes along unlisted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.third_party import (
    IMAGES,
    PAGE,
    ROOT,
    Package,
    list_models,
    list_packages,
    render,
    require_licences,
)

OF_OTHERS = {
    ".woff",
    ".woff2",
    ".ttf",
    ".otf",
    ".eot",
    ".onnx",
    ".gguf",
    ".safetensors",
    ".bin",
    ".png",
    ".jpg",
}


@pytest.fixture(scope="module")
def packages() -> list[Package]:
    """All that comes along. To look through what is installed takes a third of a second."""
    return list_packages()


def test_the_page_lists_every_package_of_the_wheel_and_of_each_image_at_its_version() -> None:
    page = PAGE.read_text("utf-8")
    for lock in ("run", *IMAGES):
        text = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE):
            assert f"| {name} | {version} |" in page, f"make third-party: {name} of {lock}.txt"


def test_the_page_is_made_of_what_is_installed_and_all_of_it_may_come_along(packages: list[Package]) -> None:
    models = list_models()
    require_licences(packages, models)
    assert render(packages, models) == PAGE.read_text("utf-8")
    environments = {each.name: each.environments for each in packages}
    assert environments["z3-solver"] == ("formal",)
    assert "research" in environments["tld"]


@pytest.mark.parametrize("licence", ["unknown", "GPL-3.0-only", "MIT AND AGPL-3.0-only", "Proprietary", ""])
def test_a_licence_that_is_unknown_or_reaches_our_code_is_refused_by_name(
    packages: list[Package], licence: str
) -> None:
    package, *others = packages
    with pytest.raises(ValueError, match=rf"^{package.name}: the licence .* not among those"):
        require_licences([replace(package, licence=licence), *others], [])


@pytest.mark.parametrize(
    "licence", ["(MIT OR GPL-2.0-only) AND Zlib", "BSD-3-Clause OR Apache-2.0", "MPL-2.0"]
)
def test_one_permitted_licence_of_those_to_choose_from_is_enough(
    packages: list[Package], licence: str
) -> None:
    require_licences([replace(packages[0], licence=licence)], [])


def test_a_package_without_an_origin_and_a_model_without_a_hash_are_refused(packages: list[Package]) -> None:
    package, model = packages[0], list_models()[0]
    with pytest.raises(ValueError, match="names no place") as refused:
        require_licences([replace(package, origin="unknown")], [replace(model, sha256="")])
    assert f"{model.name}: needs a SHA-256" in str(refused.value)


def test_the_package_parley_holds_no_font_model_or_picture_of_others() -> None:
    held = [each for each in (ROOT / "services").rglob("*") if each.suffix in OF_OTHERS]
    assert [Path(each).name for each in held] == []
