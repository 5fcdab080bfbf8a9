"""Messages as Outlook keeps them."""

import real_files as real
from msgforge import Message

from app.core.documents import read_document

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
