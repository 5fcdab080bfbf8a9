"""Speed of the session store on this machine: python tests/bench/sessions.py [--sessions 10000]

A store of many sessions is made in a temporary folder (a minute for 10,000), then measured: each
search three times, the median counts; opening a session of 2,000 messages; the list; and what
storing a reply costs per token, against the same reply without a store in the same run. CPU
seconds of this process, all threads.
"""

import argparse
import json
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from app.core.chat.conversation import Conversation, Turn
from app.core.sessions.store import Incoming, SessionStore

ENGLISH = """
the engine reads a prompt and keeps its prefix cache while tokens stream from the model so that
later questions about the same document cost little more than their own words and the lease report
bridge colour memory kernel speculative draft accept length context window
"""
WORDS = ENGLISH.split()
CHINESE = "模型会把提示的前缀缓存起来以便后续问题只需处理新的词元文档租约报告桥梁颜色内存上下文窗口"


def text(dice: random.Random, words: int) -> str:
    english = " ".join(dice.choices(WORDS, k=words))
    start = dice.randrange(len(CHINESE) - 12)
    return f"{english}。{CHINESE[start : start + 12]}。"


def talk(dice: random.Random, pairs: int) -> Conversation:
    turns = []
    for _ in range(pairs):
        turns += [Turn("user", text(dice, 15)), Turn("assistant", text(dice, 80))]
    return Conversation(turns)


def fill(store: SessionStore, sessions: int, dice: random.Random) -> tuple[str, str]:
    """Keys of the session with 2,000 messages and of an ordinary one."""
    made = 0
    for start in range(0, sessions, 500):
        count = min(500, sessions - start)
        made += len(store.put(Incoming(talk(dice, 4)) for _ in range(count)))
    rare = Conversation([Turn("user", "Where is the zebra crossing? 斑马线在哪里？")])
    (ordinary,) = store.put([Incoming(rare)])
    (long,) = store.put([Incoming(talk(dice, 1000), "Long")])
    return long, ordinary


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def median(work: Callable[[], object], times: int = 5) -> tuple[float, float]:
    """Median CPU and wall seconds."""
    found = []
    for _ in range(times):
        before, began = cpu(), time.monotonic()
        work()
        found.append((cpu() - before, time.monotonic() - began))
    return statistics.median(c for c, _ in found), statistics.median(w for _, w in found)


def stream(conversation: Conversation, tokens: int, per_s: float) -> float:
    """CPU seconds of a reply of so many tokens of four characters, at this speed."""
    conversation._append(Turn("user", "Go."))
    answer = Turn("assistant")
    conversation._append(answer)
    before, began = cpu(), time.monotonic()
    for number in range(tokens):
        answer.text += "word"
        if conversation.watcher is not None:
            conversation.watcher.grew(answer)
        if number % 50 == 0:
            time.sleep(max(0.0, began + number / per_s - time.monotonic()))
    answer.finish_reason = "stop"
    if conversation.watcher is not None:
        conversation.watcher.ended(answer)
        conversation.watcher.store.flush()
    return cpu() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=10_000)
    options = parser.parse_args()
    dice = random.Random(1)
    found: dict[str, object] = {"sessions": options.sessions}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sessions.db"
        store = SessionStore.open(path)
        began = time.monotonic()
        long, _ = fill(store, options.sessions, dice)
        found["fill_s"] = round(time.monotonic() - began, 1)
        found["file_mb"] = round(path.stat().st_size / 1e6, 1)
        figures: dict[str, object] = {}
        work: dict[str, Callable[[], object]] = {
            f"search {query!r}": (lambda query=query: store.search(query))
            for query in (
                "zebra",
                "the",
                "prefix cache",
                "lease bri",
                "缓",
                "缓存",
                "斑马线",
                "桥梁颜色",
                "nowhere",
                "the zebra",
                "d",
            )
        }
        work |= {
            "open 2,000 messages": lambda: store.resume(long).close(),
            "list the first 100": store.recent,
            "list the last 100": lambda: store.recent(100, options.sessions - 100),
        }
        for name, each in work.items():
            used, took = median(each)
            figures[name] = {"cpu_ms": round(used * 1e3, 1), "wall_ms": round(took * 1e3, 1)}
        found["figures"] = figures
        costs = []
        for _ in range(3):
            bare = stream(Conversation(), 6000, 2000)
            kept = Conversation()
            session = store.begin(kept)
            costs.append((stream(kept, 6000, 2000) - bare) / 6000)
            session.close()
        found["store_us_per_token_at_2000_per_s"] = round(statistics.median(costs) * 1e6, 1)
        store.close()
    print(json.dumps(found, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
