"""Readings of GSM8K answers, as lm-evaluation-harness reads them."""

import pytest

from app.bench import grading


@pytest.mark.parametrize(
    ("text", "strict", "lenient"),
    [
        ("48/2 = 24. 48+24 = 72.\n#### 72", "72", "72"),
        ("So she pays $1,234.50 in all.", None, "$1,234.50"),
        ("#### 12\nWait: the answer is 13", "12", "13"),
        ("The temperature is -5", None, "-5"),
        ("no number here", None, None),
        ("", None, None),
        ("it is 7.", None, "7."),
        ("####72", None, "72"),
    ],
)
def test_both_readings(text, strict, lenient):
    assert (grading.strict(text), grading.lenient(text)) == (strict, lenient)


@pytest.mark.parametrize(
    ("found", "answer", "right"),
    [
        ("1,234", "1234", True),
        ("$18", "18", True),
        ("18.", "18", True),
        ("18.00", "18", False),  # compared as written, as the harness does
        ("19", "18", False),
        (None, "18", False),
    ],
)
def test_comparing(found, answer, right):
    assert grading.equal(found, answer) is right


def test_comparing_by_value():
    assert grading.equal_by_value("$57.00.", "57")
    assert grading.equal_by_value("1,000", "1000.0")
    assert not grading.equal_by_value("57.01", "57")
    assert not grading.equal_by_value(None, "57")
    assert not grading.equal_by_value("$", "57")


def test_the_reference_is_what_follows_the_mark():
    assert grading.reference("He has <<2+3=5>>5.\n#### 1,005") == "1,005"
    assert grading.reference("42") == "42"
