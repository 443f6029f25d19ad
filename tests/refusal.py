"""How bad input is refused: by one sentence."""

from typing import Any

import pytest

from multiadvisor.errors import BadInput


def refused(message: str, call: Any, /, *given: Any, **how: Any) -> str:
    """The call refuses what it is given, in one line that fits this pattern: the line."""
    with pytest.raises(BadInput, match=message) as caught:
        call(*given, **how)
    assert "\n" not in str(caught.value)
    return str(caught.value)
