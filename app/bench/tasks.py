"""The prompts of `bench ab`: texts to rewrite, free chat, or a file of the user's."""

import json
from dataclasses import dataclass

from app.bench import grading
from app.core.i18n import _
from engine_bridge.errors import UsageError
from engine_bridge.paths import expanded

# Prose stands in one line, as documents do: a model does not repeat a text's hard line breaks,
# and each would break off what is drafted.
LEASE = (
    "The lease of the north hall begins on 1 March and runs for three years. The tenant pays "
    "4,200 a month, due on the third working day, and heating by the meter in the cellar. Two "
    "keys are handed over against signature; a lost key costs 180. The hall may be used for "
    "rehearsal and storage, not for sales. Walls may be painted in light colours. The "
    "landlord inspects the roof each spring and gives notice a week before. Either side may "
    "end the lease with six months' notice to the end of a quarter, in writing."
)

MINUTES = (
    "Present: Okafor, Lindqvist, Marchetti, Tanaka. Apologies: Brandt. The minutes of the "
    "last meeting were approved without change. Lindqvist reported that the new pump arrived "
    "on 14 May and runs at 62 percent of its rated power; the old one was sold for parts. "
    "Marchetti asked whether the budget of 38,000 still holds. Tanaka answered that 31,400 "
    "are spent and that the rest covers the valves and the inspection in August. The next "
    "meeting is on 9 June at 10:00 in room 2.17."
)

MANUAL = (
    "Before the first use, remove the film from both filters and rinse the tank with clear "
    "water. Fill the tank up to the upper mark, close the lid until it clicks, and press the "
    "button for three seconds. The lamp turns blue while water is heated and green when it is "
    "ready. Empty the tank after each use. Clean the filters once a week under running water, "
    "never in a dishwasher, and replace them after six months. If the lamp blinks red, unplug "
    "the device and let it cool down."
)

LETTER = (
    "Dear Ms Havel, thank you for your letter of 3 October about the delivery of order "
    "48-1127. The two cabinets left our warehouse in Brno on 28 September and were handed to "
    "the carrier the same day. According to the carrier, nobody could be reached at the "
    "address you gave us, and the cabinets are now stored at the depot in Olomouc. Please "
    "tell us by 20 October when a second delivery suits you; storage costs nothing until "
    "then. We are sorry for the trouble."
)

STACK = '''class Stack:
    """A stack of integers with a limit."""

    def __init__(self, limit=100):
        self.items = []
        self.limit = limit

    def push(self, value):
        if len(self.items) >= self.limit:
            raise OverflowError("the stack is full")
        self.items.append(value)

    def pop(self):
        if not self.items:
            raise IndexError("the stack is empty")
        return self.items.pop()

    def __len__(self):
        return len(self.items)
'''

REPORT = """import csv
import statistics


def read_rows(path):
    with open(path, newline="") as file:
        return [row for row in csv.DictReader(file) if row["status"] == "ok"]


def mean_duration(rows):
    return statistics.mean(float(row["duration"]) for row in rows)


def slowest(rows, count=5):
    ordered = sorted(rows, key=lambda row: float(row["duration"]), reverse=True)
    return [row["name"] for row in ordered[:count]]


def main(path):
    rows = read_rows(path)
    print("mean", mean_duration(rows))
    print("slowest", slowest(rows))
"""

SERVER = """[server]
host = "127.0.0.1"
port = 8080
workers = 4
timeout = 30

[server.limits]
max_body = 1048576
max_headers = 64
rate_per_minute = 600

[log]
level = "info"
path = "/var/log/app.log"
rotate = "daily"
keep = 14

[cache]
enabled = true
size = 2048
ttl = 300
"""

QUERY = """SELECT
    customers.name,
    customers.country,
    COUNT(orders.id) AS order_count,
    SUM(orders.total) AS revenue
FROM customers
JOIN orders ON orders.customer_id = customers.id
WHERE orders.created_at >= '2025-01-01'
  AND orders.status = 'paid'
GROUP BY customers.name, customers.country
HAVING SUM(orders.total) > 1000
ORDER BY revenue DESC
LIMIT 20;
"""

_EDITS = (
    ("Repeat the following text word for word, but write 'agreement' instead of 'lease'.", LEASE),
    ("Repeat the following text exactly, but change the name Tanaka to Kimura.", MINUTES),
    ("Repeat the following text exactly, but write 'appliance' instead of 'device'.", MANUAL),
    ("Repeat the following letter exactly, but change the order number to 48-2238.", LETTER),
    ("Rename the class Stack to IntStack and give the whole code back, nothing else.", STACK),
    ("Rename read_rows to load_rows everywhere and give the whole code back.", REPORT),
    ("Set the port to 9090 and the log level to debug, and give the whole file back.", SERVER),
    ("Change the limit to 50 rows and give the whole query back, nothing else.", QUERY),
)
REWRITE = tuple(f"{order}\n\n{text}" for order, text in _EDITS)

CHAT = (
    "Explain how photosynthesis works to a curious twelve-year-old.",
    "What should I consider before I adopt a dog?",
    "Tell a short story about a lighthouse keeper who finds a letter.",
    "Why is the sky blue during the day and red in the evening?",
    "Describe the differences between TCP and UDP, with an example of use for each.",
    "Give advice for a first job interview.",
    "How does a refrigerator keep food cold?",
    "Write a friendly message inviting neighbours to a summer party.",
)

TASKS = {"rewrite": REWRITE, "chat": CHAT}
ANSWER_TOKENS = {"chat": 48, "gsm8k": 512}
"""How long answers may be where 128 tokens are not right: the shorter, the more often the two
sides take turns, and the less of the machine's noise remains; but sums must come to an end."""


def answer_tokens(task: str) -> int:
    """How long answers may be, for a task by its name or a file."""
    return ANSWER_TOKENS.get(task, 128)


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, and the number that answers it where there is a right answer."""

    prompt: str
    answer: str | None = None

    def is_right(self, text: str) -> bool:
        """Whether a reply gives the answer, by the last number in it; False where there is none."""
        return self.answer is not None and grading.equal(grading.lenient(text), self.answer)


def questions(task: str) -> tuple[Question, ...]:
    """The questions of a task by its name, or of a file: JSON lines with `prompt` or `question`
    (and `answer`, a number), else one prompt a line.

    Raises UsageError where it cannot be read or holds no prompt.
    """
    if task in TASKS:
        return tuple(Question(prompt) for prompt in TASKS[task])
    path = expanded(task)
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        names = ", ".join(TASKS)
        raise UsageError(
            _("{task!r} is no task, and no file of prompts that can be read.").format(task=task),
            _("Name one of {names}, or a text file with one prompt a line.").format(names=names),
        ) from error
    if not lines:
        raise UsageError(
            _("{file} holds no prompt.").format(file=path.name), _("Write one prompt a line.")
        )
    return tuple(_question(line) for line in lines)


def _question(line: str) -> Question:
    try:
        entry = json.loads(line)
    except ValueError:
        return Question(line)
    if not isinstance(entry, dict) or not (prompt := entry.get("prompt") or entry.get("question")):
        return Question(line)
    answer = entry.get("answer")
    return Question(str(prompt), None if answer is None else grading.reference(str(answer)))
