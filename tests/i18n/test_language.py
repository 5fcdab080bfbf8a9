"""Which language is chosen, and that it is spoken everywhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from app.core import i18n

VARIABLES = ("LING_CHAT_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    i18n.use(None)
    yield
    i18n.use(None)


@pytest.mark.parametrize(
    ("environment", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LANG": "zh_CN.GBK"}, "zh_CN"),
        ({"LANG": "zh"}, "zh_CN"),
        ({"LANG": "zh_Hans_SG.UTF-8"}, "zh_CN"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "zh_CN.UTF-8", "LC_MESSAGES": "C"}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "LING_CHAT_LANGUAGE": "en"}, "en"),
        ({"LANG": "C", "LING_CHAT_LANGUAGE": "zh-Hans"}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "LING_CHAT_LANGUAGE": "xx"}, "zh_CN"),
    ],
)
def test_the_locale_chooses(
    home: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], language: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert i18n.language() == language


def test_the_setting_wins_over_the_locale_and_a_broken_file_over_nothing(home: Path) -> None:
    file = home / "config" / "ling-chat" / "settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[appearance]\nlanguage = "zh_CN"\n')
    assert i18n.language() == "zh_CN"
    for text in ("[appearance\nlanguage = 3", "language = 3", '[appearance]\nlanguage = "auto"'):
        file.write_text(text)
        i18n.use(None)
        assert i18n.language() == "en"


def ling_chat(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LING_CHAT_LANGUAGE": "zh_CN"} | environment
    argv = [sys.executable, "-m", "app", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=env)


def test_help_errors_and_doctor_speak_chinese(home: Path) -> None:
    told = ling_chat("--help").stdout
    assert told.startswith("用法：")
    assert "与本地模型对话" in told
    assert "显示此说明并退出。" in told
    assert "在标准输出上回答" in ling_chat("ask", "--help").stdout
    missing = ling_chat("ask", "Hi", "-f", "missing.txt")
    assert missing.returncode == 2
    assert "没有文件 missing.txt。" in missing.stderr
    assert "没有选项" in ling_chat("ask", "--none").stderr
    assert "密钥保存在" in ling_chat("doctor").stdout


def test_tables_and_reports_speak_chinese(home: Path) -> None:
    listed = ling_chat("models", "list").stdout
    assert listed.startswith("名称")
    assert "用于测试。" in listed
    article = ling_chat("bench", "roofline", "--article").stdout
    report = ling_chat("bench", "report").stdout
    doctor = ling_chat("doctor").stdout
    for text in (listed, article, report, doctor):
        named = r"[\w/.-]*(/|\d)[\w/.-]*|`.*`|TERM=\w+|ling-chat \w+ \w+|NAME|OSC|GGUF"
        words = re.findall(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", re.sub(named, "", text))
        assert words == [], "three English words in a row"


def test_json_stays_english(home: Path) -> None:
    assert '"area": "hardware"' in ling_chat("doctor", "--json").stdout


def test_the_app_speaks_chinese(home: Path) -> None:
    env = os.environ | {"LING_CHAT_LANGUAGE": "zh_CN", "TERM": "xterm-256color"}
    argv = ["-m", "app", "--url", "http://127.0.0.1:9"]
    app = pexpect.spawn(sys.executable, argv, env=env, dimensions=(30, 100), encoding="utf-8")
    app.expect("什么想问的", timeout=60)
    app.expect("无法连接")
    app.send("\x1bOP")
    app.expect("滚动一页")
    app.send("\x1b")
    app.send("\x11")
    app.expect(pexpect.EOF)
    app.close()
    assert app.exitstatus == 0
