"""Calls through litellm's Router; runs in an environment of its own. Prints calls a second and the median in ms."""

import asyncio
import sys
import time
from statistics import median


async def main(base_url: str, at_once: int, count: int) -> None:
    """Stream `count` answers with `at_once` in flight, after a round to warm up."""
    import litellm  # type: ignore[import-not-found,unused-ignore]

    parameters = {"model": "openai/m", "api_base": base_url, "api_key": "bench"}
    router = litellm.Router(
        model_list=[{"model_name": "m", "litellm_params": parameters}], num_retries=0, allowed_fails=3
    )
    took: list[float] = []

    async def ask(number: int) -> None:
        began = time.monotonic()
        message = [{"role": "user", "content": f"Bench {number}?"}]
        stream = await router.acompletion(model="m", messages=message, stream=True)
        async for _ in stream:
            pass
        took.append(time.monotonic() - began)

    async def ask_several(numbers: "asyncio.Queue[int]") -> None:
        while not numbers.empty():
            await ask(numbers.get_nowait())

    seconds = 0.0
    for amount in (at_once, count):
        numbers: asyncio.Queue[int] = asyncio.Queue()
        for number in range(amount):
            numbers.put_nowait(number)
        took.clear()
        began = time.monotonic()
        await asyncio.gather(*(ask_several(numbers) for _ in range(at_once)))
        seconds = time.monotonic() - began
    sys.stdout.write(f"{count / seconds:.1f} {median(took) * 1000:.2f}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
