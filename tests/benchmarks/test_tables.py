"""Tables of figures stand in columns, in any script."""

from rich.cells import cell_len

from app.bench.text import aligned
from app.core.figures import pad


def test_columns_end_at_the_same_cell_in_chinese_too():
    rows = [("", "平均", "p50"), ("首字延迟（TTFT），秒", "0.46", "0.4"), ("decode", "24.56", "1")]
    assert len({cell_len(row) for row in aligned(rows)}) == 1


def test_padding_counts_wide_characters_twice_and_never_cuts():
    assert pad("已验证", 8) == "已验证  "
    assert pad("关", 4, to_right=True) == "  关"
    assert pad("已验证", 2) == "已验证"
