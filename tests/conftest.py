"""Settings of all tests."""

import os

from hypothesis import settings

# The first example of a test may have to compile, hence no deadline; in CI the examples are the same each time.
settings.register_profile("multiadvisor", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("multiadvisor")
