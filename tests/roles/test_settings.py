"""Every error in a settings file is reported in one line, with the file's name."""

import pytest

from opfl_chain.cli.daemons import CLIENT, COMMITTEE, SERVER
from opfl_chain.roles.settings import (
    AccountSettings,
    ClientSettings,
    MemberSettings,
    ServerSettings,
    SettingsInvalid,
)

SMALLEST = """\
state = "state/here"
[chain]
rpc_url = "http://127.0.0.1:8545"
deployment = "deployment.json"
job = 3
[account]
keystore = "key.json"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "node.toml"
        path.write_text(text)
        return path

    return write


def refusal(path, kind=ClientSettings):
    with pytest.raises(SettingsInvalid) as caught:
        kind.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


@pytest.mark.parametrize(
    ("kind", "example"),
    [(ClientSettings, CLIENT), (MemberSettings, COMMITTEE), (ServerSettings, SERVER)],
)
def test_the_examples_that_commands_print_are_settings(written, kind, example):
    assert kind.read(written(example)).chain.job == 1


def test_paths_are_relative_to_the_file_and_absolute_ones_stay(written, tmp_path):
    text = SMALLEST.replace('"key.json"', '"/elsewhere/key.json"')
    found = ClientSettings.read(written(text))
    assert found.state == tmp_path / "state" / "here"
    assert found.chain.deployment == tmp_path / "deployment.json"
    assert str(found.account.keystore) == "/elsewhere/key.json"
    assert found.chain.confirmations == 0 and found.listen == "127.0.0.1:0"


def test_a_file_that_is_not_there(tmp_path):
    assert "does not exist" in refusal(tmp_path / "none.toml")


def test_a_folder_is_no_file(tmp_path):
    assert "cannot be read" in refusal(tmp_path)


def test_toml_error_is_named_with_its_line(written):
    assert "line 2" in refusal(written('state = "here"\nstate: here\n'))


def test_binary_file_is_refused(written, tmp_path):
    path = tmp_path / "node.toml"
    path.write_bytes(b"state = '\xff'")
    assert "cannot be read" in refusal(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SMALLEST.replace("job = 3", ""), "chain.job: Field required"),
        (SMALLEST.replace("job = 3", "job = 0"), "chain.job: Input should be greater"),
        (SMALLEST.replace("job = 3", 'job = "one"'), "chain.job: Input should be a valid integer"),
        (SMALLEST.replace("job = 3", "jop = 3"), "chain.jop: Extra inputs are not permitted"),
        (SMALLEST.replace("[account]", "[account]\npasword_file = 'x'"), "account.pasword_file"),
        ("threads = 0\n" + SMALLEST, "threads: "),
        ('commit = "direct"\n' + SMALLEST, "commit: Extra inputs are not permitted"),
        (SMALLEST + '[data]\nsplit = "halves"\n', "data.split: "),
        (SMALLEST + "[data]\nparts = 0\n", "data.parts: "),
        ("", "chain: Field required; account: Field required; state: Field required"),
    ],
)
def test_missing_unknown_or_mistyped_field_is_named(written, text, said):
    assert said in refusal(written(text))


@pytest.mark.parametrize("count", [2, 9])
def test_a_member_needs_the_addresses_of_the_whole_roster(written, count):
    text = f'bls_keystore = "bls.json"\nmpc_addresses = {["a:1"] * count}\n' + SMALLEST
    assert "mpc_addresses: " in refusal(written(text), MemberSettings)


def test_a_password_is_in_a_file_or_in_the_environment(tmp_path, monkeypatch):
    (tmp_path / "password").write_text("of a file\n")
    account = AccountSettings(keystore="key.json", password_file=tmp_path / "password")
    assert account.password() == "of a file"
    monkeypatch.setenv("OPFL_PASSWORD", "of the environment")
    assert AccountSettings(keystore="key.json").password() == "of the environment"


def test_without_a_password_it_is_said_where_to_put_it(monkeypatch):
    monkeypatch.delenv("OPFL_PASSWORD", raising=False)
    with pytest.raises(Exception, match=r"key\.json needs a password: set OPFL_PASSWORD"):
        AccountSettings(keystore="key.json").password()
