"""What an answer cites and quotes, against the documents it was given."""

import dataclasses

import pytest

from app.core.chat.prompt import documents_prompt
from app.core.citations import check_answer
from app.core.documents import Document, document_from_bytes

REPORT = Document(
    "report.pdf",
    "The lease of Hazel House\nwas signed on 14 March 2031.\n\n合同第七条：租\n金每月九百元。\n"
    "It costs 3.5% of “income” — no more.\n",
    "",
    "aa",
    1,
    "pdf",
    (0, 55),
)
NOTES = document_from_bytes("\n".join(f"line {n}" for n in range(1, 101)).encode(), "my notes.txt")
REPOSITORY = Document(
    "repo/",
    "=== src/main.py ===\na = 1\nb = 2\n\n=== src/util.py ===\nc = 3\n\n",
    "",
    "ff",
    1,
    "folder",
    (0, 33),
)
ALL = [REPORT, NOTES, REPOSITORY]


def cited(answer, documents=ALL):
    return [
        (one.title, one.page, one.line, one.found)
        for one in check_answer(answer, documents).citations
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It was [report.pdf p.2].", [("report.pdf", 2, None, True)]),
        ("[report p. 1, p.9]", [("report.pdf", 1, None, True), ("report.pdf", 9, None, False)]),
        ("[Report.PDF, page 1–2]", [("report.pdf", 1, None, True)]),
        ("【report.pdf 第2页】", [("report.pdf", 2, None, True)]),
        ("[my notes.txt l.40]", [("my notes.txt", None, 40, True)]),
        ("[my notes, lines 40-44; report pp. 1]",
         [("my notes.txt", None, 40, True), ("report.pdf", 1, None, True)]),
        ("[my notes.txt l.101]", [("my notes.txt", None, 101, False)]),
        ("[my notes.txt l.0]", [("my notes.txt", None, 0, False)]),
        ("[src/main.py l.2]", [("repo/", None, 2, True)]),
        ("[main.py l.3]", [("repo/", None, 3, False)]),
        ("[util.py]", [("repo/", None, None, True)]),
        ("[Smith 2020, p. 12]", [("Smith 2020", 12, None, False)]),
        ("[p.1]", [("", 1, None, False)]),  # of which of the three?
        ("see [1], a[0], [x] and [the lease](http://p.1)", []),
        ("`[report.pdf p.1]`\n```\n[report.pdf p.1]\n```", []),
    ],
)  # fmt: skip
def test_places_are_found_as_people_and_models_write_them(answer, expected):
    assert cited(answer) == expected


def test_with_one_document_its_name_may_be_left_out():
    assert cited("[p.2] [p.3]", [REPORT]) == [
        ("report.pdf", 2, None, True),
        ("report.pdf", 3, None, False),
    ]


def test_a_citation_leads_to_its_place_in_answer_and_document():
    answer = "First. [my notes.txt l.12] [src/util.py l.1] [report.pdf p.2]"
    line, code, page = check_answer(answer, ALL).citations
    assert answer[line.start : line.end] == line.text == "[my notes.txt l.12]"
    assert NOTES.text[line.offset :].startswith("line 12\n")
    assert REPOSITORY.text[code.offset :].startswith("c = 3")
    assert REPORT.text[page.offset :].lstrip().startswith("合同")


def test_in_a_part_of_a_document_places_are_those_of_the_whole():
    part = dataclasses.replace(REPORT, first_page=7, first_line=100)
    assert "[p.8]" in documents_prompt([part])
    assert cited("[p.8] [p.2] [l.101] [l.1]", [part]) == [
        ("report.pdf", 8, None, True),
        ("report.pdf", 2, None, False),
        ("report.pdf", None, 101, True),
        ("report.pdf", None, 1, False),
    ]
    (line,) = check_answer("[l.101]", [part]).citations
    assert part.text[line.offset :].startswith("was signed")


def missing(answer, documents=ALL, said=()):
    return [quote.text for quote in check_answer(answer, documents, said).quotes_not_found]


@pytest.mark.parametrize(
    "answer",
    [
        "“the lease of Hazel House was signed”",
        '"The lease of HAZEL HOUSE was signed,"',
        "„The lease of Hazel House“ «lease of Hazel House was»",
        "「合同第七条：租金每月九百元」",
        "\"It costs 3.5% of 'income' - no more\"",
        "“The lease … 14 March 2031” “The lease [of the house] was signed on 14 March”",
        "> The lease of Hazel House\n> was *signed* on 14 March 2031. [report.pdf p.1]\n",
        "He calls it “fair” and “a joke”.",  # too short to be sources
        '`"no such words in here"`',
    ],
)
def test_quotes_that_are_in_the_text_pass_whatever_their_typography(answer):
    assert missing(answer) == []


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("“the lease of Hazel House was burned”", "the lease of Hazel House was burned"),
        ('"It costs 35% of income"', "It costs 35% of income"),
        ("“14 March 2031 … The lease of Hazel House”", "14 March 2031 … The lease of Hazel House"),
        ("「合同第八条：租金每月九百元」", "合同第八条：租金每月九百元"),
        ("> The tenant may leave at any time.\n\nSo.", "The tenant may leave at any time."),
    ],
)
def test_quotes_that_are_not_in_the_text_are_flagged(answer, text):
    assert missing(answer) == [text]


def test_what_the_user_said_may_be_quoted():
    answer = "You ask “who pays for the new roof”."
    assert missing(answer) == ["who pays for the new roof"]
    assert missing(answer, said=["And who pays for the new roof?"]) == []


def test_without_documents_nothing_is_flagged():
    assert not check_answer("“the lease of Hazel House” [p.1]", []).quotes


def test_a_quote_leads_to_its_place():
    filler = "Some words that stand before it, again and again. " * 2_000
    document = document_from_bytes((filler + REPORT.text + filler).encode(), "long.txt")
    (quote,) = check_answer("He wrote “signed on 14 MARCH”.", [document]).quotes
    assert document.text[quote.offset :].startswith("signed on 14 March")


# What the model reads


def test_marks_depend_on_the_document_alone_and_stand_where_they_say():
    text = "".join(f"{n}: " + "x" * 70 + "\n" for n in range(1, 200))
    long = document_from_bytes(text.encode(), "long.txt")
    alone, both = documents_prompt([long]), documents_prompt([long, REPORT])
    shared = alone[: alone.index("</document>")]
    assert both.startswith(shared)
    assert documents_prompt([long]) == alone
    marks = [line for line in shared.split("\n") if line.startswith("[l.")]
    assert len(marks) == len(text) // 1_250
    for mark in marks:
        number = mark[3:-1]
        assert f"{mark}\n{number}: " in shared
    assert "[long.txt l." in alone[alone.index("</document>") :]


def test_pages_are_marked_and_empty_ones_too():
    document = Document("a.pdf", "one\n\nthree\n", "", "", 10, "pdf", (0, 5, 5))
    prompt = documents_prompt([document])
    assert prompt.startswith('<document title="a.pdf">\n[p.1]\none\n\n[p.2]\n[p.3]\nthree\n</doc')
    assert "[a.pdf p.1]" in prompt


def test_lines_of_a_folder_are_counted_in_each_file():
    body = "".join(f"{n} {'y' * 60}\n" for n in range(1, 60))
    text = f"=== a.py ===\n{body}\n=== b.py ===\n{body}\n"
    half = text.index("=== b.py")
    document = Document("repo/", text, "", "", len(text), "folder", (0, half))
    prompt = documents_prompt([document])
    first, second = prompt.split("=== b.py ===")
    marks = [line for line in first.split("\n") if line.startswith("[l.")]
    assert marks == [line for line in second.split("</doc")[0].split("\n") if line[:3] == "[l."]
    for mark in marks:
        assert f"{mark}\n{mark[3:-1]} y" in first
    assert "[a.py l.40]" in prompt


def test_a_short_text_costs_no_marks():
    document = document_from_bytes(b"short\ntext\n", "a.txt")
    assert documents_prompt([document]) == '<document title="a.txt">\nshort\ntext\n</document>\n\n'
    assert documents_prompt([]) == ""


def test_a_mark_cited_back_is_found():
    text = "".join(f"{n}: " + "x" * 70 + "\n" for n in range(1, 200))
    long = document_from_bytes(text.encode(), "long.txt")
    prompt = documents_prompt([long])
    for line in prompt.split("\n"):
        if line.startswith("[l."):
            (one,) = check_answer(line, [long]).citations
            assert long.text[one.offset :].startswith(f"{one.line}: ")
