"""Lists in one setting, separated by commas."""

from typing import Annotated, Final

from pydantic import AfterValidator, SecretStr

MIN_SECRET: Final = 32
"""Characters of a secret that others must not guess."""


def split_list(text: str) -> list[str]:
    """Return the parts of a comma-separated list, without the spaces around them and without empty ones."""
    return [each.strip() for each in text.split(",") if each.strip()]


def _check_secrets(secrets: SecretStr) -> SecretStr:
    if any(len(each) < MIN_SECRET for each in split_list(secrets.get_secret_value())):
        raise ValueError(f"must have {MIN_SECRET} characters or more each")
    return secrets


SecretList = Annotated[SecretStr, AfterValidator(_check_secrets)]
"""A setting of secrets that sign or encrypt, separated by commas, each of 32 characters or more."""
