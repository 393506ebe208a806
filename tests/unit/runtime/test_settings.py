from typing import Self

import pytest
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator

from parley.runtime.entry import CONFIGURATION, INTERRUPTED, run
from parley.runtime.errors import ConfigurationError
from parley.runtime.settings import ServiceSettings

SECRET = "sk-very-secret-0123"


class Example(ServiceSettings):
    api_key: SecretStr = SecretStr("ok-by-default")
    base_url: str = Field(default="http://127.0.0.1", validation_alias="OPENAI_BASE_URL")
    limits: dict[str, int] = Field(default_factory=dict)
    rounds: int = 3

    @field_validator("api_key")
    @classmethod
    def _known(cls, value: SecretStr) -> SecretStr:
        if not value.get_secret_value().startswith("ok-"):
            raise ValueError(f"{value.get_secret_value()} is not a key")
        return value

    @field_validator("base_url")
    @classmethod
    def _web(cls, value: str) -> str:
        if not value.startswith("http"):
            raise ValueError(f"{value!r} is not a web address")
        return value


class Needy(ServiceSettings):
    needed: str = Field()
    either: str = Field(validation_alias=AliasChoices("OPENAI_KEY", "OTHER_KEY"))  # type: ignore[pydantic-alias]


class Checked(ServiceSettings):
    api_key: SecretStr

    @model_validator(mode="after")
    def _whole(self) -> Self:
        raise ValueError(f"PARLEY_API_KEY: {self.api_key.get_secret_value()} does not fit the rest")


def problems(settings: type[ServiceSettings] = Example) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        settings.load()
    return caught.value.problems


def test_without_variables_the_defaults_stand_and_the_server_gets_them() -> None:
    settings = Example.load()
    assert (settings.host, settings.port, settings.log_level) == ("127.0.0.1", 0, "info")
    assert settings.server().grace_seconds == settings.grace_seconds


def test_variables_are_read_and_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_PORT", "7401")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("PARLEY_UNKNOWN", "is passed over")
    settings = Example.load()
    assert (settings.server().port, settings.base_url) == (7401, "http://127.0.0.1:1/v1")
    with pytest.raises(ValidationError):
        settings.port = 1  # type: ignore[misc]


def test_a_variable_that_is_nearly_a_setting_is_refused_since_it_would_do_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_ROUND", "9")
    monkeypatch.setenv("PARLEY_GRACE_SECOND", "9")
    assert problems() == (
        "PARLEY_GRACE_SECOND: is no setting; PARLEY_GRACE_SECONDS is",
        "PARLEY_ROUND: is no setting; PARLEY_ROUNDS is",
    )


def test_every_bad_variable_has_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_PORT", "99999")
    monkeypatch.setenv("PARLEY_LOG_LEVEL", "loud")
    monkeypatch.setenv("PARLEY_ROUNDS", "many")
    lines = problems()
    assert [line.split(":")[0] for line in lines] == ["PARLEY_PORT", "PARLEY_LOG_LEVEL", "PARLEY_ROUNDS"]
    assert "less than or equal to 65535" in lines[0]
    assert "'warning'" in lines[1]
    assert not any("\n" in line for line in lines)


def test_missing_variables_are_named() -> None:
    assert problems(Needy) == ("PARLEY_NEEDED: must be set", "OPENAI_KEY: must be set")


def test_an_alias_is_named_as_people_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "gopher://x")
    (line,) = problems()
    assert line.startswith("OPENAI_BASE_URL: ")
    assert "is not a web address" in line


def test_a_variable_that_should_be_json_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_LIMITS", "{not json")
    assert problems() == ("PARLEY_LIMITS: is not valid JSON",)


def test_a_secret_is_in_no_message_even_if_its_own_validator_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_API_KEY", SECRET)
    for settings in (Example, Checked):
        (line,) = problems(settings)
        assert line.startswith("PARLEY_API_KEY: ")
        assert SECRET not in line


@pytest.mark.parametrize("secret", ["a", "key", "hunter2", SECRET])
def test_a_short_value_is_hidden_as_a_word_and_leaves_the_message_readable(
    monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("PARLEY_API_KEY", secret)
    (line,) = problems()
    assert line.startswith("PARLEY_API_KEY: ********** is not ")
    monkeypatch.setenv("PARLEY_API_KEY", "ok-fine")
    monkeypatch.setenv("PARLEY_LOG_LEVEL", secret)
    (line,) = problems()
    assert line == "PARLEY_LOG_LEVEL: Input should be 'debug', 'info', 'warning' or 'error'"


def test_no_value_is_printed_since_any_may_hold_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_ROUNDS", "mongodb://me:hunter2@host")
    assert not any("hunter2" in line for line in problems())


def test_a_configuration_error_is_exit_4_with_its_lines_and_no_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def main() -> None:
        raise ConfigurationError("PARLEY_A: wrong", "PARLEY_B: wrong too")

    assert run(main) == CONFIGURATION == 4
    captured = capsys.readouterr()
    assert captured.err == "PARLEY_A: wrong\nPARLEY_B: wrong too\n"
    assert captured.out == ""


def test_an_exit_code_is_passed_on_and_an_interrupt_is_130() -> None:
    async def return_three() -> int:
        return 3

    async def return_nothing() -> None:
        return None

    async def interrupt() -> None:
        raise KeyboardInterrupt

    assert (run(return_three), run(return_nothing), run(interrupt)) == (3, 0, INTERRUPTED)


class Reached(ServiceSettings):
    """An endpoint whose address has a pattern."""

    base_url: str | None = Field(
        default=None, validation_alias="OPENAI_BASE_URL", pattern=r"^https?://[^\s@]+$"
    )


def test_an_address_that_is_none_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:11434/v1")
    assert problems(Reached) == (
        "OPENAI_BASE_URL: must begin with http:// or https:// and hold no space and no @",
    )
