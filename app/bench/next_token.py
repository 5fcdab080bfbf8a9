"""Teacher-forced agreement: along a given text, how often an engine would say the same next
token. Unlike comparing answers, one early difference does not count again and again."""

from collections.abc import Sequence
from typing import Any

from engine_bridge.chat import web
from engine_bridge.chat.flavour import LLAMA_SERVER, SGLANG, flavour_of
from engine_bridge.engine import Engine

ALIKE = 0.1
"""How far, as a share, the tokens of an answer's text may be in number from those it was made of.
A made-up tokenizer may not lead from a text back to its tokens, and then nothing can be said."""


async def agreement(
    engine: Engine, texts: Sequence[tuple[str, str, int]], every: int = 4
) -> dict[str, Any] | None:
    """Over prompts, answers and these answers' tokens: at every so many tokens of the answer,
    whether the engine's likeliest next token is the answer's. `same` of `n`; None where the
    server cannot be asked.

    Raises httpx.HTTPError where it refuses.
    """
    flavour, endpoint = flavour_of(engine.status), engine.endpoint
    if endpoint is None or flavour not in (LLAMA_SERVER, SGLANG):
        return None
    ask = _llama if flavour is LLAMA_SERVER else _sglang
    same = n = 0
    async with web.new_client(endpoint.base_url) as http:

        async def post(path: str, body: dict[str, Any]) -> Any:
            url = f"{web.root_url(endpoint.base_url)}{path}"
            answer = await http.post(url, json=body, headers=endpoint.headers, timeout=120)
            return answer.raise_for_status().json()

        for prompt, answer, tokens in texts:
            right, asked = await ask(post, prompt, answer, tokens, every)
            same, n = same + right, n + asked
    return {"same": same, "n": n, "every": every, "share": same / n} if n else None


def _chat(prompt: str) -> dict[str, Any]:
    """A question as the answers were asked for."""
    messages = [{"role": "user", "content": prompt}]
    return {"messages": messages, "chat_template_kwargs": {"enable_thinking": False}}


def _alike(said: Sequence[int], tokens: int) -> bool:
    return abs(len(said) - tokens) <= max(1, ALIKE * tokens)


async def _llama(post: Any, prompt: str, answer: str, tokens: int, every: int) -> tuple[int, int]:
    """One short completion for each place; the prefix cache makes it cost a token or a few."""
    start = (await post("/apply-template", _chat(prompt)))["prompt"]
    text = {"content": start, "add_special": True, "parse_special": True}
    head = (await post("/tokenize", text))["tokens"]
    said = (await post("/tokenize", {"content": answer}))["tokens"]
    if not _alike(said, tokens):
        return 0, 0
    same = 0
    places = range(0, len(said), every)
    for at in places:
        body = {"prompt": head + said[:at], "n_predict": 1, "temperature": 0}
        found = (await post("/completion", body | {"return_tokens": True}))["tokens"]
        same += found[:1] == said[at : at + 1]
    return same, len(places)


async def _sglang(post: Any, prompt: str, answer: str, tokens: int, every: int) -> tuple[int, int]:
    """One prefill that returns the likeliest token at each place of the answer."""
    head = (await post("/v1/tokenize", {"model": "default"} | _chat(prompt)))["tokens"]
    text = {"model": "default", "prompt": answer, "add_special_tokens": False}
    said = (await post("/v1/tokenize", text))["tokens"]
    if not said or not _alike(said, tokens):
        return 0, 0
    body = {
        "input_ids": head + said,
        "sampling_params": {"max_new_tokens": 1, "temperature": 0},
        "return_logprob": True,
        "logprob_start_len": len(head) - 1,
        "top_logprobs_num": 1,
    }
    tops = (await post("/generate", body))["meta_info"]["input_top_logprobs"][-len(said) :]
    places = range(0, len(said), every)
    same = sum(bool(tops[at]) and tops[at][0][1] == said[at] for at in places)
    return same, len(places)
