import hashlib
import sys

import pytest

from opfl_chain.system.plugins import NameTaken, PluginBroken, Registry

GROUP = "opfl_chain.tests"


class Unknown(Exception):
    def __init__(self, name, known):
        super().__init__(f"unknown {name}, known: {', '.join(known)}")


def registry(check=lambda found: True):
    return Registry("shape", GROUP, {"round": "ours"}, Unknown, check)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package of one module, with entry points given as `name = target`."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(package, source, *entries):
        monkeypatch.delitem(sys.modules, package, raising=False)
        (tmp_path / f"{package}.py").write_text(source)
        info = tmp_path / f"{package}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *entries, ""]))
        return tmp_path / f"{package}.py"

    return write


def test_ours_are_found_without_plugins():
    assert registry()["round"] == "ours"
    assert registry().names() == ["round"]
    assert registry().plugin("round") is None
    with pytest.raises(Unknown, match="unknown oval, known: round"):
        registry()["oval"]


def test_entry_points_of_installed_packages_are_found(install):
    install("ovals", "OVAL = 'theirs'", "oval = ovals:OVAL")
    found = registry()
    assert found["oval"] == "theirs"
    assert found.names() == ["round", "oval"]
    assert "oval" in found
    assert "square" not in found


def test_plugin_is_loaded_only_when_asked_for(install):
    install("broken_ovals", "1 / 0", "oval = broken_ovals:OVAL")
    found = registry()
    assert found.names() == ["round", "oval"]
    assert found["round"] == "ours"


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("", "AttributeError: module 'broken_ovals' has no attribute 'OVAL'"),
        ("OVAL = 3", "3 is not a shape"),
    ],
)
def test_failure_names_package_entry_point_and_cause(install, source, cause):
    install("broken_ovals", source, "oval = broken_ovals:OVAL")
    with pytest.raises(PluginBroken) as raised:
        registry(check=lambda found: isinstance(found, str))["oval"]
    message = str(raised.value)
    assert "package broken_ovals 1.2: entry point 'oval'" in message
    assert f"group {GROUP} (broken_ovals:OVAL)" in message
    assert cause in message
    assert "Mend or uninstall it" in message


def test_digest_is_of_the_source(install):
    source = install("ovals", "OVAL = 'theirs'", "oval = ovals:OVAL")
    before = registry().plugin("oval").digest
    content = source.read_bytes()
    assert before == hashlib.sha256(b"ovals.py %d\n" % len(content) + content).hexdigest()
    source.write_text("OVAL = 'others'")
    assert registry().plugin("oval").digest != before


@pytest.mark.parametrize("name", ["round", "oval"])
def test_name_is_taken_once(install, name):
    install("ovals", "OVAL = 'theirs'", "oval = ovals:OVAL")
    install("more_ovals", "OVAL = 'others'", f"{name} = more_ovals:OVAL")
    with pytest.raises(
        NameTaken, match=rf"shape '{name}' is registered by .* and by .*: uninstall"
    ):
        registry()[name]
    with pytest.raises(NameTaken):
        registry().plugin(name)


def test_name_taken_twice_harms_nobody_else(install):
    for package in ("ovals", "more_ovals"):
        install(package, "OVAL = SQUARE = 'theirs'", f"oval = {package}:OVAL")
    install("squares", "SQUARE = 'square'", "square = squares:SQUARE", "round = squares:SQUARE")
    found = registry()
    assert found.names() == ["round", "oval", "square"]
    assert found["square"] == "square"
    with pytest.raises(Unknown):
        found["triangle"]


def test_plugin_of_another_name_than_its_entry_point_is_refused(install):
    install("ovals", "OVAL = 'egg'", "oval = ovals:OVAL")
    found = Registry("shape", GROUP, {}, Unknown, name_of=str)
    with pytest.raises(PluginBroken, match="it calls itself 'egg': the names must be the same"):
        found["oval"]


def test_kind_has_its_article(install):
    install("broken_ovals", "OVAL = 3", "oval = broken_ovals:OVAL")
    attacks = Registry("attack", GROUP, {}, Unknown, lambda found: False)
    with pytest.raises(PluginBroken, match="3 is not an attack"):
        attacks["oval"]


class Square:
    side = 1


def test_object_of_this_process_is_plugged_in_for_a_while():
    found = registry()
    with found.plugged_in("square", Square()):
        assert found["square"].side == 1
        assert found.plugin("square").package == "(this process)"
        assert len(found.plugin("square").digest) == 64
        with (
            pytest.raises(NameTaken, match="'square' is registered by"),
            found.plugged_in("square", Square()),
        ):
            pass
    assert "square" not in found


def test_object_of_another_kind_is_not_plugged_in():
    found = registry(check=lambda each: isinstance(each, str))
    with pytest.raises(PluginBroken, match="is not a shape"), found.plugged_in("square", Square()):
        pass
