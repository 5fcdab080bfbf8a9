"""The questions of GSM8K: from a file, a folder, or the Hugging Face hub.

Only the five worked examples ship with ling-chat (MIT licence, OpenAI; assets/gsm8k).
"""

import hashlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.bench import grading
from engine_bridge import files, paths
from engine_bridge.errors import BridgeError, UnavailableError, UsageError

ROWS = "https://datasets-server.huggingface.co/rows"
"""The hub's own service that gives a data set's rows as JSON; its files there are Parquet."""
DATASET = {"dataset": "openai/gsm8k", "config": "main", "split": "test"}
PAGE = 100
CURE = (
    "Give the test set as a file: --data test.jsonl (github.com/openai/grade-school-math has it)."
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One question. `index` is its place in the test set, `answer` the number alone."""

    index: int
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Data:
    """The test set and the worked examples before each question (question and worked answer)."""

    problems: tuple[Problem, ...]
    shots: tuple[tuple[str, str], ...]
    sha256: str

    def sample(self, count: int | None, seed: int) -> tuple[Problem, ...]:
        """`count` problems drawn by `seed`, in the order drawn; all of them for None."""
        if count is None or count >= len(self.problems):
            return self.problems
        return tuple(random.Random(seed).sample(self.problems, count))  # noqa: S311

    def prompt(self, problem: Problem) -> str:
        """As lm-evaluation-harness words its task `gsm8k`, the shots first."""
        blocks = [f"Question: {question}\nAnswer: {answer}" for question, answer in self.shots]
        return "\n\n".join([*blocks, f"Question: {problem.question}\nAnswer:"])


def load(data: str | None, told: Callable[[str], None] = lambda _: None) -> Data:
    """The data in a file or folder (`test.jsonl`, and `five_shots.jsonl` where it has one), or
    from the hub, kept for later runs. Blocking.

    Raises UsageError where a file holds none, UnavailableError where the hub cannot be reached.
    """
    if data is None:
        path = paths.data_dir() / "gsm8k-test.jsonl"
        if not path.is_file():
            told("fetching GSM8K from the hub")
            _fetch(path)
    else:
        given = paths.expanded(data)
        path = given / "test.jsonl" if given.is_dir() else given
    shots_path = path.parent / "five_shots.jsonl"
    if not shots_path.is_file():
        shots_path = Path(__file__).parents[2] / "assets" / "gsm8k" / "five_shots.jsonl"
    rows, shots = _rows(path), _rows(shots_path)
    problems = [
        Problem(at, question, grading.reference(answer))
        for at, (question, answer) in enumerate(rows)
    ]
    digest = hashlib.sha256(json.dumps([rows, shots]).encode()).hexdigest()
    return Data(tuple(problems), tuple(shots), digest)


def _rows(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{path} cannot be read.", CURE) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no text file.", CURE) from error
    rows = [_row(path, at, line) for at, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise UsageError(f"{path} holds no question.", CURE)
    return rows


def _row(path: Path, at: int, line: str) -> tuple[str, str]:
    try:
        found = json.loads(line)
        return str(found["question"]), str(found["answer"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"Line {at} of {path} is no question of GSM8K: a line of JSON with question and"
            " answer is wanted.",
            CURE,
        ) from error


def _fetch(path: Path) -> None:
    """The test set by the hub's service, into a file that is whole or not there."""
    import httpx

    rows: list[dict[str, str]] = []
    try:
        with httpx.Client(timeout=60, follow_redirects=True) as http:
            total = None
            while total is None or len(rows) < total:
                where = {**DATASET, "offset": str(len(rows)), "length": str(PAGE)}
                answer = http.get(ROWS, params=where).raise_for_status().json()
                total = int(answer["num_rows_total"])
                page = [each["row"] for each in answer["rows"]]
                if not page:
                    raise ValueError("the service gave fewer rows than it announced")
                rows += [{"question": row["question"], "answer": row["answer"]} for row in page]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise UnavailableError("GSM8K cannot be fetched from the hub.", CURE) from error
    try:
        files.replace(path, "".join(json.dumps(row) + "\n" for row in rows))
    except OSError as error:
        raise BridgeError(f"GSM8K cannot be written to {path}.", "Free some space.") from error
