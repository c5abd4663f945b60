"""Inputs of a run, checked against what the executable declares."""

from __future__ import annotations

from collections.abc import Mapping

from opfl_chain.mpc.encoding import public_share
from opfl_chain.mpc.errors import InputMismatch, ShareInvalid
from opfl_chain.mpc.executable import Executable, Input, Visibility
from opfl_chain.mpc.ranks import Rank
from opfl_chain.mpc.session import SessionInput
from opfl_chain.mpc.shares import Share


def shares_of_inputs(
    rank: Rank, executable: Executable, inputs: Mapping[str, SessionInput]
) -> dict[str, Share]:
    """All inputs as the shares of this member."""
    declared = {each.name: each for each in executable.inputs}
    if different := set(declared) ^ set(inputs):
        name = min(different)
        reason = "is missing" if name in declared else "is not an input of it"
        raise InputMismatch(executable.name, name, reason)
    shares = {}
    for name, each in declared.items():
        try:
            shares[name] = _share_of(rank, executable, each, inputs[name])
        except ShareInvalid as error:
            raise InputMismatch(executable.name, name, str(error)) from error
    return shares


def _share_of(rank: Rank, executable: Executable, declared: Input, value: SessionInput) -> Share:
    if isinstance(value, Share) != (declared.visibility is Visibility.SECRET):
        given = "a share" if isinstance(value, Share) else "an array"
        raise ShareInvalid(f"it is {declared.visibility}, and {given} was given")
    if tuple(value.shape) != declared.shape or str(value.dtype) != declared.dtype:
        raise ShareInvalid(
            f"it is {declared.dtype} of shape {declared.shape}, and {value.dtype} of shape"
            f" {tuple(value.shape)} was given"
        )
    if not isinstance(value, Share):
        return public_share(rank, value, executable.options.fraction_bits, declared.name)
    if value.rank != rank:
        raise ShareInvalid(f"it is the share of member {value.rank}, and we are member {rank}")
    if value.storage.is_public:
        raise ShareInvalid("it is secret, and the share is of a public value")
    return value
