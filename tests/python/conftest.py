import json
import os

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture(scope="session")
def goldens():
    """name → the lines of a file of goldens that come with the tests."""
    def read(name):
        path = os.path.join(ROOT, "tests", "data", "goldens", name)
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    return read
