"""A system without libgomp: a private view of the file system where it is deleted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HIDE_LIBGOMP = """
set -e
library=$(readlink -f "$(dirname "$(ldconfig -p | awk '/libgomp.so.1/ {print $NF; exit}')")")
layer=$(mktemp -d)
mount -t tmpfs none "$layer"
mkdir "$layer/upper" "$layer/work"
mount -t overlay overlay \
    -o lowerdir="$library",upperdir="$layer/upper",workdir="$layer/work" "$library"
rm "$library"/libgomp.so.1*
exec "$@"
"""


def without_libgomp(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", HIDE_LIBGOMP, "bash", sys.executable, *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def _can_hide() -> None:
    if sys.platform != "linux" or os.geteuid() != 0 or not Path("/proc/self/ns/mnt").exists():
        pytest.skip("needs root on Linux for a private mount namespace")
    tried = without_libgomp("-c", "pass")
    if tried.returncode:
        pytest.skip(f"no private mounts here: {tried.stderr.strip()}")


@pytest.mark.usefixtures("_can_hide")
def test_a_missing_libgomp_is_named_with_its_cure(host_home, smol):
    result = without_libgomp("-m", "app", "engine", "start", "--model", str(smol))
    assert result.returncode == 3
    assert "libgomp" in result.stderr
    assert "apt install libgomp1" in result.stderr


@pytest.mark.usefixtures("_can_hide")
def test_doctor_finds_a_missing_libgomp(host_home):
    result = without_libgomp("-m", "app", "doctor")
    assert result.returncode == 1
    assert "apt install libgomp1" in result.stdout
