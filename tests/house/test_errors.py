"""What is said of errors."""

from engine_bridge.errors import SHOWN, brief


def test_an_error_that_nobody_foresaw_does_not_show_a_whole_document():
    document = "secret " * 10_000
    told = brief(UnicodeEncodeError("utf-8", document, 7, 8, "surrogates not allowed"))
    assert told.startswith("UnicodeEncodeError('utf-8', 'secret ")
    assert len(told) == SHOWN + 1
    assert brief(ValueError("small")) == "ValueError('small')"
