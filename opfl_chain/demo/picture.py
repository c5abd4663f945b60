"""The end of a demo as a picture: what a terminal shows, in one SVG file."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from opfl_chain.demo.result import DemoResult
from opfl_chain.demo.tables import print_result

# Without the fonts that rich would load from the network.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_WIDTH = 96


def save_picture(path: Path, result: DemoResult) -> None:
    """Drawn anew, so that the width of somebody's terminal makes no difference."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    print_result(console, result)
    path.parent.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(path), title="opfl demo", code_format=_FORMAT)
