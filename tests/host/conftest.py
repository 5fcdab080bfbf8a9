"""Makes the helpers' fixtures known to the tests beside it."""

from conftest_host import host_home, spec

__all__ = ["host_home", "spec"]
