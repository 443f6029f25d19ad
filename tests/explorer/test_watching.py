"""`multiadvisor train --watch` as it is typed in a terminal: Ctrl-C stops the training, and the page tells."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from explorer.typed import Server
from patience import PATIENCE
from processes import wait_for


@pytest.mark.slow
def test_after_ctrl_c_the_page_stays_and_after_another_it_ends(tmp_path):
    command = ["train", "two-goal", "--steps", "250000000", "--eval-every", "1000", "--eval-episodes", "2"]
    mine, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "multiadvisor", *command, "--out", str(tmp_path / "run"), "--watch"],
        stdin=terminal, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0, text=True,
        env={**os.environ, "BROWSER": "true"},
    ) as training:  # fmt: skip
        assert training.stderr is not None

        def until(text):
            """The first line in which this stands; what is typed here reaches every process of the terminal."""
            return next(line for line in training.stderr if re.search(text, line))

        try:
            server = Server(training, until("#ticket="))
            wait_for(lambda: json.loads(server.ask(f"live/{server.runs[0]}/0"))["lines"])
            os.killpg(training.pid, signal.SIGINT)
            assert "continue with --resume" in until("interrupted after")
            until("the page stays until Ctrl-C")
            assert json.loads(server.ask("live"))["runs"][0]["training"] is False
            os.killpg(training.pid, signal.SIGINT)
            assert training.wait(PATIENCE) == 130
            with pytest.raises(OSError, match="refused"):
                server.ask("live")
        finally:
            training.kill()
            os.close(mine)
            os.close(terminal)
