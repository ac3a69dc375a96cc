"""Measure OpenAI's own client without any wrapper, as the yardstick.

    python -m benchmarks.raw_client --calls 1000 --concurrency 64

One ``AsyncOpenAI`` serves as many workers as there may be calls in flight; they share one iterator.
``OPENAI_BASE_URL`` is the address of the provider.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam

from .simulated_replies import prose


async def work(
    client: AsyncOpenAI, prompts: Iterator[list[ChatCompletionMessageParam]], likely: int
) -> None:
    """Ask one question after the other until none are left."""
    for messages in prompts:
        if likely:
            reply = await client.chat.completions.create(
                model="sim-model",
                messages=messages,
                temperature=0,
                logprobs=True,
                top_logprobs=likely,
            )
        else:
            reply = await client.chat.completions.create(
                model="sim-model", messages=messages, temperature=0
            )
        assert reply.choices[0].message.content


def prompts(calls: int, characters: int) -> Iterator[list[ChatCompletionMessageParam]]:
    """Yield this many different questions of this length."""
    system = prose("system", 1000)[: characters // 3]
    body = prose("user", 4000)[: characters - len(system)]
    for number in range(calls):
        yield [
            {"role": "system", "content": system},
            {"role": "user", "content": f"{number}: {body}\nScore: <number>"},
        ]


async def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--characters", type=int, default=1500, help="of each prompt")
    parser.add_argument(
        "--likely", type=int, default=0, help="log-probabilities of so many tokens for each"
    )
    arguments = parser.parse_args()
    questions = prompts(arguments.calls, arguments.characters)
    async with AsyncOpenAI() as client, asyncio.TaskGroup() as group:
        for _ in range(arguments.concurrency):
            group.create_task(work(client, questions, arguments.likely))


if __name__ == "__main__":
    asyncio.run(main())
