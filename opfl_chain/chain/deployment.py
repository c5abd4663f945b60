"""Deployment of the six contracts: create, record, reconnect and verify.

Their constructors take each other's addresses. That is possible because the address of a contract
follows from its creator's address and nonce, so all are known beforehand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rlp
from eth_typing import ChecksumAddress
from eth_utils.crypto import keccak

from opfl_chain.chain.bindings import Beacon, Charges, Deposits, Jobs, Rewards, Rounds
from opfl_chain.chain.contracts.compiler import Artifact, Compilation, compile_contracts
from opfl_chain.chain.contracts.contract import Call
from opfl_chain.chain.errors import ChainMismatch, DeploymentInvalid
from opfl_chain.chain.rpc import Rpc, checksum, shown_url, tohex, unhex
from opfl_chain.chain.send.sender import TransactionSender
from opfl_chain.system.files import write_atomically

# Rewards is last: its constructor checks that the others are wired to each other.
ORDER = ("Deposits", "Beacon", "Jobs", "Rounds", "Charges", "Rewards")


@dataclass(frozen=True)
class Contracts:
    """The bindings of the deployed contracts."""

    deposits: Deposits
    beacon: Beacon
    jobs: Jobs
    rounds: Rounds
    charges: Charges
    rewards: Rewards

    @property
    def addresses(self) -> list[ChecksumAddress]:
        return [
            self.deposits.address,
            self.beacon.address,
            self.jobs.address,
            self.rounds.address,
            self.charges.address,
            self.rewards.address,
        ]


@dataclass(frozen=True)
class Deployment:
    """The contracts' addresses. `block` is the first that can hold their events."""

    chain_id: int
    genesis: str
    block: int
    addresses: Mapping[str, ChecksumAddress]
    code_hashes: Mapping[str, str]

    def write(self, path: Path) -> None:
        contracts = {
            name: {"address": self.addresses[name], "code_hash": self.code_hashes[name]}
            for name in ORDER
        }
        content = {
            "chain_id": self.chain_id,
            "genesis": self.genesis,
            "block": self.block,
            "contracts": contracts,
        }
        write_atomically(path, json.dumps(content, indent=2) + "\n")

    @staticmethod
    def read(path: Path) -> Deployment:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            contracts = {name: content["contracts"][name] for name in ORDER}
            return Deployment(
                chain_id=int(content["chain_id"]),
                genesis=str(content["genesis"]),
                block=int(content["block"]),
                addresses={name: checksum(entry["address"]) for name, entry in contracts.items()},
                code_hashes={name: str(entry["code_hash"]) for name, entry in contracts.items()},
            )
        except FileNotFoundError as error:
            raise DeploymentInvalid(
                f"{path} does not exist. Deploy the contracts first, or give the file that the "
                "deployment wrote."
            ) from error
        except OSError as error:
            raise DeploymentInvalid(f"{path} cannot be read: {error.strerror}.") from error
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DeploymentInvalid(
                f"{path} is not a deployment: {type(error).__name__}: {error}. It needs chain_id, "
                f"genesis, block, and address and code_hash of {', '.join(ORDER)}."
            ) from error

    def connect(self, rpc: Rpc, compilation: Compilation | None = None) -> Contracts:
        """Return the contracts after checking that the chain holds exactly what we compile."""
        self._require_chain(rpc)
        compilation = compilation or compile_contracts()
        for name in ORDER:
            code = rpc.code(self.addresses[name])
            if tohex(keccak(code)) != self.code_hashes[name]:
                raise DeploymentInvalid(
                    f"{self.addresses[name]} should hold {name} with code hash "
                    f"{self.code_hashes[name]} but holds {tohex(keccak(code))} "
                    f"({len(code)} bytes). Was the chain restarted? Deploy again."
                )
            require_code(compilation.artifacts[name], code, self.addresses[name])
        contracts = Contracts(
            Deposits(rpc, self.addresses["Deposits"]),
            Beacon(rpc, self.addresses["Beacon"]),
            Jobs(rpc, self.addresses["Jobs"]),
            Rounds(rpc, self.addresses["Rounds"]),
            Charges(rpc, self.addresses["Charges"]),
            Rewards(rpc, self.addresses["Rewards"]),
        )
        _require_wiring(contracts)
        return contracts

    def _require_chain(self, rpc: Rpc) -> None:
        found = (rpc.chain_id(), rpc.genesis_hash())
        if found != (self.chain_id, self.genesis):
            raise ChainMismatch(
                f"{shown_url(rpc.url)} is not the chain of the deployment (chain id, genesis)",
                (self.chain_id, self.genesis),
                found,
                "Give the address of the right node, or deploy on this chain.",
            )


def deploy(
    sender: TransactionSender, rpc: Rpc, compilation: Compilation | None = None
) -> Deployment:
    """Create the contracts, or finish an interrupted deployment of this sender."""
    compilation = compilation or compile_contracts()
    first = sender.nonce_of(_key(ORDER[0]))
    nonce = sender.next_nonce() if first is None else first
    planned = {
        name: created_address(sender.address, nonce + offset) for offset, name in enumerate(ORDER)
    }
    receipts = {
        name: sender.send(call, _key(name)) for name, call in _creations(compilation, planned)
    }
    codes = {name: rpc.code(planned[name]) for name in ORDER}
    deployment = Deployment(
        chain_id=rpc.chain_id(),
        genesis=rpc.genesis_hash(),
        block=min(receipt.block_number for receipt in receipts.values()),
        addresses=planned,
        code_hashes={name: tohex(keccak(code)) for name, code in codes.items()},
    )
    deployment.connect(rpc, compilation)
    return deployment


def created_address(creator: str, nonce: int) -> ChecksumAddress:
    """Return the address of the contract that this account creates with this nonce."""
    return checksum(keccak(rlp.encode([unhex(creator), nonce]))[12:])


def require_code(artifact: Artifact, code: bytes, address: str) -> None:
    """Raise unless `code` is what we compile, ignoring immutables set by the constructor."""
    wanted, found = bytearray(artifact.deployed_bytecode), bytearray(code)
    for start, length in artifact.immutable_spans:
        wanted[start : start + length] = found[start : start + length] = bytes(length)
    if wanted != found:
        raise DeploymentInvalid(
            f"{address} holds other code than {artifact.source} compiles to ({len(code)} and "
            f"{len(artifact.deployed_bytecode)} bytes). It was deployed from another version: "
            "check that one out, or deploy again."
        )


def _creations(
    compilation: Compilation, at: Mapping[str, ChecksumAddress]
) -> list[tuple[str, Call]]:
    code = {name: compilation.artifacts[name].bytecode for name in ORDER}
    deposits, beacon, jobs, rounds, charges, rewards = (at[name] for name in ORDER)
    return [
        ("Deposits", Deposits.creation(code["Deposits"], jobs, charges, rewards)),
        ("Beacon", Beacon.creation(code["Beacon"], jobs, rounds)),
        ("Jobs", Jobs.creation(code["Jobs"], deposits, beacon, rounds, charges)),
        ("Rounds", Rounds.creation(code["Rounds"], jobs, beacon)),
        ("Charges", Charges.creation(code["Charges"], deposits, jobs, rounds, beacon)),
        ("Rewards", Rewards.creation(code["Rewards"], deposits, jobs, rounds, beacon, charges)),
    ]


def _require_wiring(contracts: Contracts) -> None:
    """Check the immutable addresses, which correct code alone does not guarantee."""
    deposits, beacon, jobs, rounds, charges, rewards = contracts.addresses
    wiring: dict[str, tuple[Any, Any]] = {
        "Deposits.JOBS": (contracts.deposits.jobs(), jobs),
        "Deposits.CHARGES": (contracts.deposits.charges(), charges),
        "Deposits.REWARDS": (contracts.deposits.rewards(), rewards),
        "Beacon.JOBS": (contracts.beacon.jobs(), jobs),
        "Beacon.ROUNDS": (contracts.beacon.rounds(), rounds),
        "Jobs.DEPOSITS": (contracts.jobs.deposits(), deposits),
        "Jobs.BEACON": (contracts.jobs.beacon(), beacon),
        "Jobs.ROUNDS": (contracts.jobs.rounds(), rounds),
        "Jobs.CHARGES": (contracts.jobs.charges(), charges),
        "Rounds.JOBS": (contracts.rounds.jobs(), jobs),
        "Rounds.BEACON": (contracts.rounds.beacon(), beacon),
        "Charges.DEPOSITS": (contracts.charges.deposits(), deposits),
        "Charges.JOBS": (contracts.charges.jobs(), jobs),
        "Charges.ROUNDS": (contracts.charges.rounds(), rounds),
        "Charges.BEACON": (contracts.charges.beacon(), beacon),
        "Rewards.DEPOSITS": (contracts.rewards.deposits(), deposits),
        "Rewards.JOBS": (contracts.rewards.jobs(), jobs),
        "Rewards.ROUNDS": (contracts.rewards.rounds(), rounds),
    }
    for name, (found, wanted) in wiring.items():
        if found != wanted:
            raise DeploymentInvalid(f"{name} is {found} but should be {wanted}. Deploy again.")


def _key(name: str) -> str:
    return f"deploy {name}"
