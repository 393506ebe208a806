"""What a field of an answer comes to that makes no sense: models are asked for a form, and keep to it more or less."""

from typing import Any

from pydantic import ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import PydanticUseDefault

__all__ = ["or_absent"]


def or_absent(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Validate a field, and leave it at its default where that fails: it is absent then, and never made up."""
    try:
        return read(given)
    except ValidationError:
        raise PydanticUseDefault from None
