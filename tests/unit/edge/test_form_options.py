"""The options of a new debate are those of the contract."""

from google.protobuf.descriptor import Descriptor

from parley.edge.console.form_options import list_options
from parley.v1.debate_pb2 import DebateSpec


def test_each_format_that_a_person_can_start_has_its_options() -> None:
    assert set(list_options()["formats"]) == {"panel", "arena", "moderated"}


def test_an_option_says_what_it_means_its_range_and_its_default() -> None:
    rounds = next(each for each in list_options()["formats"]["panel"] if each["path"] == ("panel", "rounds"))
    assert (rounds["kind"], rounds["min"], rounds["max"], rounds["default"]) == ("integer", 1, 100, "3")
    assert rounds["help"].startswith("Rounds;")


def test_a_choice_has_the_names_that_the_contract_has_for_it() -> None:
    options = {each["path"]: each for each in list_options()["formats"]["panel"]}
    assert {"value": "SYNTHESIS_METHOD_MERGE", "label": "merge"} in options["panel", "synthesisMethod"][
        "choices"
    ]


def test_every_path_leads_to_a_field_of_the_specification() -> None:
    found = list_options()
    for option in [*found["general"], *(each for options in found["formats"].values() for each in options)]:
        message: Descriptor | None = DebateSpec.DESCRIPTOR
        for name in option["path"]:
            assert message is not None
            message = message.fields_by_camelcase_name[name].message_type
