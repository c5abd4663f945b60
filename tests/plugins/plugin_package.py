"""A package of plug-ins outside the tree, made of the examples and installed with pip."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PYPROJECT = """\
[build-system]
requires = ["setuptools>=75"]
build-backend = "setuptools.build_meta"

[project]
name = "opfl-extras"
version = "1.2"

[project.entry-points."opfl_chain.models"]
perceptron = "opfl_extras.new_model:Perceptron"
squares = "opfl_extras.new_operation:Squares"

[project.entry-points."opfl_chain.operations"]
square = "opfl_extras.new_operation:SQUARE"

[project.entry-points."opfl_chain.attacks"]
sparse = "opfl_extras.new_attack:Sparse"

[project.entry-points."opfl_chain.rules"]
linf = "opfl_extras.new_rule:LINF"
broken = "opfl_extras.broken:RULE"

[project.entry-points."opfl_chain.data_sources"]
mirrored = "opfl_extras.mirrored:MIRRORED"
"""

MIRRORED = """\
from dataclasses import replace

import opfl_chain
from opfl_chain.extend import DataSource


class Mirrored(DataSource):
    name = "mirrored"

    def load(self, data_dir=None, *, download, progress):
        data = opfl_chain.load_dataset("synthetic")
        train = replace(data.train, images=data.train.images[:, :, ::-1])
        return replace(data, name=self.name, train=train)


MIRRORED = Mirrored()
"""


def install_plugins(folder: Path) -> Path:
    """Build the package and install it; return the folder to put on PYTHONPATH."""
    source, target = folder / "source", folder / "installed"
    package = source / "opfl_extras"
    package.mkdir(parents=True)
    (source / "pyproject.toml").write_text(PYPROJECT)
    (package / "__init__.py").write_text('"""Plug-ins for opfl_chain."""\n')
    (package / "broken.py").write_text("import nothing_of_this_name\n")
    (package / "mirrored.py").write_text(MIRRORED)
    for example in ("new_model", "new_operation", "new_attack", "new_rule"):
        shutil.copy(ROOT / "examples" / f"{example}.py", package)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, *offline, "--target", target, source], check=True, capture_output=True)
    return target


def run_with(
    installed: Path, *command: str | Path, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process that finds the installed plug-ins."""
    path = os.pathsep.join(map(str, (ROOT, installed)))
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path, **more},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
