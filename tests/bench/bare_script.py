"""A script as anyone writes it: the calls of a panel of three in one round, streamed with the `openai` client, and nothing else."""

import asyncio
import sys

from openai import AsyncOpenAI, DefaultAioHttpClient

LEVELS = (4, 6, 3, 1)
"""Requirements and proposals, critiques, refinements, and the answer: calls that can be made at a time."""


async def _ask(client: AsyncOpenAI, model: str, prompt: str) -> str:
    stream = await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": prompt}], stream=True
    )
    return "".join([each.delta.content or "" async for chunk in stream for each in chunk.choices])


async def _main(base_url: str, model: str, question: str) -> None:
    async with AsyncOpenAI(
        api_key="bench", base_url=base_url, max_retries=0, http_client=DefaultAioHttpClient()
    ) as client:
        answers: list[str] = []
        for level, calls in enumerate(LEVELS):
            prompts = [f"{question} {level}.{number}" for number in range(calls)]
            answers = await asyncio.gather(*[_ask(client, model, each) for each in prompts])
        print(answers[0])


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
