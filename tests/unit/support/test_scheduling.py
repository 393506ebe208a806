"""In which order processes of pytest take files of tests."""

from tests.support.scheduling import order_scopes, scope_of


def test_what_shares_servers_ports_or_parsed_modules_runs_in_one_process() -> None:
    assert scope_of("tests/contract/test_log.py::test_one") == scope_of(
        "tests/contract/test_vectors.py::test_two"
    )
    assert scope_of("tests/e2e/test_guides.py::test_one") == scope_of("tests/e2e/test_steering.py::test_two")
    assert scope_of("tests/unit/test_contract.py::test_one") == scope_of(
        "tests/unit/test_plain_names.py::test_two"
    )
    assert scope_of("tests/unit/test_a.py::test_one") == "tests/unit/test_a.py"


def test_what_takes_long_comes_first_and_what_waits_is_spread_among_what_computes() -> None:
    unit = [f"tests/unit/test_{each}.py" for each in range(3)]
    integration = [f"tests/integration/test_{each}.py" for each in range(4)]
    waiting = ["tests/e2e/test_a.py", "tests/e2e/test_b.py"]
    one, two, three, four = integration
    assert order_scopes([*waiting, *integration, "tests/chaos/", *unit]) == [
        "tests/chaos/",
        waiting[0],
        one,
        two,
        waiting[1],
        three,
        four,
        *unit,
    ]


def test_services_are_compiled_before_pods_that_cannot_keep_what_they_compile() -> None:
    chart, collected, images, guide = (
        f"tests/deploy/test_{each}.py" for each in ("chart", "collected", "images", "install_guide")
    )
    assert order_scopes([chart, guide, images, collected]) == [collected, images, guide, chart]


def test_a_part_of_the_tests_is_ordered_too() -> None:
    assert order_scopes([]) == []
    assert order_scopes(["tests/e2e/test_a.py", "tests/unit/test_b.py"]) == [
        "tests/e2e/test_a.py",
        "tests/unit/test_b.py",
    ]
