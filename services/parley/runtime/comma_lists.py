"""Lists in one setting, separated by commas."""


def split_list(text: str) -> list[str]:
    """Return the parts of a comma-separated list, without the spaces around them and without empty ones."""
    return [each.strip() for each in text.split(",") if each.strip()]
