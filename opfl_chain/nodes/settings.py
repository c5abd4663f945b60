"""What a daemon is told in its TOML file. Paths in it are relative to the file."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from opfl_chain.chain.errors import ChainError
from opfl_chain.nodes.errors import SettingsInvalid

PASSWORD_VARIABLE = "OPFL_PASSWORD"
S = TypeVar("S", bound="Section")


def _beside_file(path: Path, info: ValidationInfo) -> Path:
    folder: Path = (info.context or {}).get("folder", Path())
    return folder / path


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="after")
    @classmethod
    def _resolved(cls, value: Any, info: ValidationInfo) -> Any:
        return _beside_file(value, info) if isinstance(value, Path) else value

    @classmethod
    def read(cls: type[S], path: Path) -> S:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise SettingsInvalid(path, "does not exist") from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsInvalid(path, f"cannot be read: {error}") from error
        try:
            return cls.model_validate(content, context={"folder": path.resolve().parent})
        except ValidationError as error:
            reasons = [
                f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"
                for detail in error.errors(include_url=False)
            ]
            raise SettingsInvalid(path, "; ".join(reasons)) from None


class ChainSettings(Section):
    rpc_url: str
    ws_url: str | None = None
    """Where new heads are announced; without it the chain is polled."""
    deployment: Path
    job: Annotated[int, Field(ge=1)]
    confirmations: Annotated[int, Field(ge=0, le=100)] = 0
    """Blocks that must lie on top of one before what it says is acted on."""
    poll_seconds: Annotated[float, Field(gt=0, le=60)] = 0.5


class AccountSettings(Section):
    keystore: Path
    password_file: Path | None = None
    """Without it the password is in the variable OPFL_PASSWORD."""

    def password(self) -> str:
        if self.password_file is not None:
            return self.password_file.read_text(encoding="utf-8").rstrip("\n")
        if (password := os.environ.get(PASSWORD_VARIABLE)) is None:
            raise ChainError(
                f"{self.keystore} needs a password: set {PASSWORD_VARIABLE}, or name a file that"
                " only you can read as `password_file`"
            )
        return password


class TlsSettings(Section):
    authority: Path
    certificate: Path | None = None
    private_key: Path | None = None
    """Both are needed by whoever others connect to."""


class LimitSettings(Section):
    """What this daemon puts up with. Behind a proxy or a NAT all clients have one address."""

    connections: Annotated[int, Field(ge=1)] = 256
    connections_per_address: Annotated[int, Field(ge=1)] = 128
    requests_per_second: Annotated[float, Field(gt=0)] = 50.0
    """From one address, in the long run."""
    burst: Annotated[int, Field(ge=1)] = 200


class NodeSettings(Section):
    """What all roles have."""

    chain: ChainSettings
    account: AccountSettings
    state: Path
    """A folder of its own."""
    listen: str = "127.0.0.1:0"
    tls: TlsSettings | None = None
    """Needed by all who are not on one machine."""
    server: str | None = None
    """Where the server is reached."""
    limits: LimitSettings = LimitSettings()


class DataSettings(Section):
    dataset: str = "mnist"
    data_dir: Path | None = None
    split: Literal["iid", "dirichlet"] = "iid"
    alpha: float = 1.0
    """Of a Dirichlet split: the smaller, the more unequal."""
    part: Annotated[int, Field(ge=0)] = 0
    parts: Annotated[int, Field(ge=1)] = 1
    """This client trains on part `part` of so many."""


class ClientSettings(NodeSettings):
    data: DataSettings = DataSettings()
    commit: Literal["direct", "relayed"] = "direct"
    """Relayed: through the server's batch, and directly if it is not there in time."""
    threads: Annotated[int, Field(ge=1)] = 1
    cheat: str | None = None
    """For demonstrations: the name of an attack, and the client loses its deposit for it."""


class MemberSettings(NodeSettings):
    bls_keystore: Path
    announce: str | None = None
    """The URL that clients reach this member at, if it is not the one it listens at."""
    mpc_addresses: Annotated[list[str], Field(min_length=3, max_length=3)]
    """host:port of all members in order of rank, for the MPC link."""
    mpc_listen_host: str | None = None
    mpc_link_ports: tuple[int, int] | None = None
    mpc_join_seconds: Annotated[float, Field(gt=0)] = 5.0
    """How long to wait for a peer to come to an audit, before trying again."""
    cheat: str | None = None
    """For demonstrations: how this member breaks the protocol."""


class ServerSettings(NodeSettings):
    test_dataset: str | None = None
    """If set, the accuracy of every new model on its test split is measured and logged."""
    data_dir: Path | None = None
    cheat: str | None = None
    """For demonstrations: how this server breaks the protocol."""
