"""Settings of a daemon from its TOML file (paths are relative to it), and errors of daemons."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from opfl_chain.chain.errors import ChainError

PASSWORD_VARIABLE = "OPFL_PASSWORD"


class NodeError(Exception):
    """The root of every error that daemons raise on their own account."""


class SettingsInvalid(NodeError):
    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class JobUnusable(NodeError):
    """This daemon cannot take part in the job on the chain."""


class ModelMissing(NodeError):
    """The model that the chain names cannot be had from any peer."""


class StateForeign(NodeError):
    """A state folder belongs to another job or account."""


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
    """WebSocket that announces new heads; without it the chain is polled."""
    deployment: Path
    job: Annotated[int, Field(ge=1)]
    confirmations: Annotated[int, Field(ge=0, le=100)] = 0
    """Blocks on top of a block before its events are acted on."""
    poll_seconds: Annotated[float, Field(gt=0, le=60)] = 0.5
    time: Literal["real", "virtual"] = "real"
    """Virtual: a block comes when all daemons have done what they can, as in a job on one machine.
    Then pauses are counted in blocks, and peers are waited for, however slow they are."""


class AccountSettings(Section):
    keystore: Path
    password_file: Path | None = None
    """Default: the password is read from the variable OPFL_PASSWORD."""

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
    """Certificate and key are required if others connect to this daemon."""


class LimitSettings(Section):
    """Server resource limits. Behind a proxy or a NAT all clients share one address."""

    connections: Annotated[int, Field(ge=1)] = 256
    connections_per_address: Annotated[int, Field(ge=1)] = 128
    requests_per_second: Annotated[float, Field(gt=0)] = 50.0
    """Sustained rate of one address."""
    burst: Annotated[int, Field(ge=1)] = 200


class NodeSettings(Section):
    """Settings of all roles."""

    chain: ChainSettings
    account: AccountSettings
    state: Path
    """A folder for this daemon alone."""
    listen: str = "127.0.0.1:0"
    tls: TlsSettings | None = None
    """Required unless all daemons are on one machine."""
    server: str | None = None
    """URL of the server."""
    limits: LimitSettings = LimitSettings()


class DataSettings(Section):
    dataset: str = "mnist"
    data_dir: Path | None = None
    split: Literal["iid", "dirichlet"] = "iid"
    alpha: float = 1.0
    """Concentration of a Dirichlet split: the smaller, the more unequal."""
    part: Annotated[int, Field(ge=0)] = 0
    parts: Annotated[int, Field(ge=1)] = 1
    """Number of parts; this client trains on part `part`."""


class ClientSettings(NodeSettings):
    data: DataSettings = DataSettings()
    threads: Annotated[int, Field(ge=1)] = 1
    cheat: str | None = None
    """The name of an attack, for demonstrations. It can cost the client its deposit."""


class MemberSettings(NodeSettings):
    """Settings of a member or standby."""

    bls_keystore: Path
    announce: str | None = None
    """URL at which clients reach this member, if not the one it listens at."""
    mpc_addresses: Annotated[list[str], Field(min_length=3, max_length=8)]
    """host:port of all members, then of the standbys, for the MPC link."""
    mpc_listen_host: str | None = None
    mpc_link_ports: tuple[int, int] | None = None
    mpc_join_seconds: Annotated[float, Field(gt=0)] = 5.0
    """Time to wait for a peer to join an audit, before retrying. If it is longer than the usual
    time, a peer may also be silent for so long."""
    cheat: str | None = None
    """The name of this member's misconduct, for demonstrations."""


class ServerSettings(NodeSettings):
    test_dataset: str | None = None
    """Data set whose test split measures the accuracy of every new model; none by default."""
    data_dir: Path | None = None
    cheat: str | None = None
    """The name of this server's misconduct, for demonstrations."""
