"""An agreement model for tests that need no files: it tells by the words that tests choose."""

from collections.abc import Sequence


class WordAgreement:
    """Takes two positions for the same answer if they share their first word of choice.

    `Use Kafka …` and `Kafka …` are the same answer, `Use RabbitMQ …` is another one; where one of them names none of the
    `choices` it is unsure.
    """

    def __init__(self, choices: Sequence[str] = ("kafka", "rabbitmq")) -> None:
        self._choices = choices

    async def estimate_probability(self, one: str, other: str) -> float | None:
        ours, theirs = self._choice(one), self._choice(other)
        if ours is None or theirs is None:
            return 0.5
        return 0.99 if ours == theirs else 0.01

    async def close(self) -> None:
        """Holds nothing."""

    def _choice(self, position: str) -> str | None:
        words = position.casefold().replace(".", " ").replace(",", " ").split()
        return next((word for word in words if word in self._choices), None)
