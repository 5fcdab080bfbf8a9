"""Messages as Outlook keeps them."""

import struct

import pytest
import real_files as real
from compressed_rtf import compress
from msgforge import Message

from app.core.documents import read_document
from engine_bridge.errors import BridgeError

TO = [("ann@hazel.example", "ann@hazel.example"), ("li@hazel.example", "李雷")]


def test_a_message_has_its_letters_people_and_attachments(tmp_path):
    sent = Message(
        subject="=?GBK?B?1+K94LrPzaw=?= Hazel House",
        text_body=f"{real.FACT}\r\n{real.CHINESE}\r\n",
        to=TO,
        sender=("clerk@hazel.example", "Ines Müller"),
    )
    (tmp_path / "plan.txt").write_text("a plan")
    sent.attach(tmp_path / "plan.txt")
    sent.save(tmp_path / "letter.msg")
    document = read_document(tmp_path / "letter.msg")
    assert document.kind == "mail"
    assert real.FACT in document.text
    assert real.CHINESE in document.text
    assert '"Ines Müller" <clerk@hazel.example>' in document.text
    assert "To: ann@hazel.example, 李雷 <li@hazel.example>\n" in document.text
    assert "Subject: 租洁合同 Hazel House\n" in document.text
    assert "Attached: plan.txt\n" in document.text
    assert document.note.startswith("1 attachment was not read")


def test_a_subject_with_damaged_codes_stays_as_it_is(tmp_path):
    Message(subject="=?utf-8?b?A?= Lease", text_body=real.FACT, to=TO).save(tmp_path / "letter.msg")
    text = read_document(tmp_path / "letter.msg").text
    assert "Subject: =?utf-8?b?A?= Lease\n" in text
    assert real.FACT in text


def test_a_message_of_html_alone_becomes_text(tmp_path):
    Message(subject="Lease", html_body=real.HTML, to=TO).save(tmp_path / "letter.msg")
    text = read_document(tmp_path / "letter.msg").text
    assert real.FACT in text
    assert real.CHINESE in text
    assert "<p>" not in text
    assert "alert" not in text


UNICODE, STRING8, BINARY = 0x1F, 0x1E, 0x102
SUBJECT, BODY, HTML = 0x0037, 0x1000, 0x1013
SHOWN_NAME, FILE_NAME = 0x3001, 0x3707
OF_BODY, OF_STRINGS = 0x3FDE, 0x3FFD
OTHER = 0x6F00
"""Properties: their types and numbers, with those of the two code pages; the last means nothing."""


def renamed(data: bytes, one: tuple[int, int], other: tuple[int, int], times: int = 1) -> bytes:
    """The message with another number and type of a property, in its table and its stream."""

    def places(number: int, kind: int) -> tuple[bytes, bytes]:
        stream = f"__substg1.0_{number:04X}{kind:04X}".encode("utf-16-le")
        return struct.pack("<HHI", kind, number, 6), stream

    for before, after in zip(places(*one), places(*other), strict=True):
        assert data.count(before) == times
        data = data.replace(before, after)
    return data


def with_code_page(data: bytes, page: int, which: int = OF_BODY) -> bytes:
    before = struct.pack("<HHII", 3, OF_BODY, 6, 65001)
    assert data.count(before) == 1
    return data.replace(before, struct.pack("<HHII", 3, which, 6, page))


@pytest.mark.parametrize("page", [1251, 65001, 99999], ids=["right", "wrong", "unknown"])
def test_8_bit_strings_are_read_whatever_their_code_page_is_called(page, tmp_path):
    russian = "Договор аренды. Арендатор платит в первый день каждого месяца. ".encode("cp1251")
    russian += b" " * (len(russian) % 2)
    written = Message(subject="Lease 租约", text_body=russian.decode("utf-16-le"), to=TO)
    data = renamed(written.as_bytes(), (BODY, UNICODE), (BODY, STRING8))
    (tmp_path / "letter.msg").write_bytes(with_code_page(data, page))
    text = read_document(tmp_path / "letter.msg").text
    assert "Subject: Lease 租约\n" in text
    assert "Арендатор платит в первый день" in text


@pytest.mark.parametrize(
    ("page", "encoding", "name", "file"),
    [(936, "gbk", "李雷", "合同.txt"), (1251, "cp1251", "Анна", "Договоры.txt")],
)
def test_the_code_page_of_a_message_is_that_of_its_people_and_attachments(
    page, encoding, name, file, tmp_path
):
    in_8_bits = [text.encode(encoding).decode("utf-16-le") for text in (name, file)]
    sent = Message(subject="Lease", text_body=real.FACT, to=[("li@hazel.example", in_8_bits[0])])
    sent.attach_bytes(in_8_bits[1], b"a plan")
    data = sent.as_bytes()
    for number, times in ((SHOWN_NAME, 2), (FILE_NAME, 1)):
        data = renamed(data, (number, UNICODE), (number, STRING8), times)
    (tmp_path / "letter.msg").write_bytes(with_code_page(data, page, OF_STRINGS))
    text = read_document(tmp_path / "letter.msg").text
    assert f"To: {name} <li@hazel.example>\n" in text
    assert f"Attached: {file}\n" in text


def test_a_header_that_nobody_can_read_costs_no_more_than_itself(tmp_path):
    bad = b"Lease\0\x81\x8d\x01\xff".decode("utf-16-le")
    data = Message(subject=bad, text_body=real.FACT, to=TO).as_bytes()
    data = renamed(data, (SUBJECT, UNICODE), (SUBJECT, STRING8))
    (tmp_path / "letter.msg").write_bytes(with_code_page(data, 99999, OF_STRINGS))
    text = read_document(tmp_path / "letter.msg").text
    assert "Subject: Lease" in text
    assert real.FACT in text


def test_a_page_in_an_unknown_code_page_is_read(tmp_path):
    data = Message(subject="Lease", html_body=real.HTML, to=TO).as_bytes()
    data = renamed(data, (BODY, UNICODE), (OTHER, UNICODE))
    (tmp_path / "letter.msg").write_bytes(with_code_page(data, 99999))
    assert real.CHINESE in read_document(tmp_path / "letter.msg").text


RTF = rb"{\rtf1\ansi{\fonttbl\f0 Arial;}\f0 The first.\par The second.}"


def rtf_alone(rtf: bytes = b"") -> bytes:
    """A message with no other body; the RTF is of `real.HTML`, or given as it lies in the file."""
    data = Message(subject="Lease", html_body=real.HTML, to=TO).as_bytes()
    data = renamed(data, (BODY, UNICODE), (OTHER, UNICODE))
    data = renamed(data, (HTML, BINARY), (OTHER, BINARY))
    at = data.index(b"LZFu") - 8
    return data[:at] + rtf + data[at + len(rtf) :]


def test_a_message_of_rtf_alone_is_read(tmp_path):
    (tmp_path / "letter.msg").write_bytes(rtf_alone())
    text = read_document(tmp_path / "letter.msg").text
    assert "Subject: Lease\n" in text
    assert real.FACT in text
    assert real.CHINESE in text
    assert "rtf" not in text
    assert "| 7.2 | 900 |" in text, "the page that it was is there again"
    assert "alert" not in text

    (tmp_path / "letter.msg").write_bytes(rtf_alone(compress(RTF, compressed=False)))
    assert read_document(tmp_path / "letter.msg").text.endswith("\n\nThe first.\nThe second.\n")


CHANGED = compress(RTF).replace(b"he first", b"he worst")


@pytest.mark.parametrize(
    "rtf", [b"\0" * 16, b"\xff" * 40, struct.pack("<II", 12, 9) + b"XXXX", CHANGED]
)
def test_damaged_rtf_costs_a_sentence(rtf, tmp_path):
    (tmp_path / "letter.msg").write_bytes(rtf_alone(rtf))
    with pytest.raises(BridgeError, match="is damaged or not what its name says"):
        read_document(tmp_path / "letter.msg")
