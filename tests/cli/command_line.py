"""The `opfl` command in this process: the same code as in its own, without loading it again."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from opfl_chain.cli import main


def opfl(*arguments, **environment):
    """Return what a process of the command would: its code, output and errors."""
    command = ["opfl", *map(str, arguments)]
    output, errors = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", command),
        mock.patch.dict(os.environ, environment),
        redirect_stdout(output),
        redirect_stderr(errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())
