"""The wheel has all that the API needs, outside a checkout too."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The folder of an unpacked wheel, built from a copy of the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT / "opfl_chain", source / "opfl_chain")
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "-w", folder, source]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_wheel_is_typed(wheel):
    assert (wheel / "opfl_chain" / "py.typed").is_file()


def test_api_of_the_wheel_resolves_outside_the_checkout(wheel, tmp_path):
    code = (
        "import opfl_chain, opfl_chain.extend as extend\n"
        "print(opfl_chain.__file__)\n"
        "found = [getattr(m, name) for m in (opfl_chain, extend) for name in m.__all__]\n"
        "policy = opfl_chain.default_policy('lenet-61706', batch_size=8)\n"
        "from opfl_chain.lab.calibration.reference import reference_boundary\n"
        "print(reference_boundary(policy).rule)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [str(wheel / "opfl_chain" / "__init__.py"), "guided"]
