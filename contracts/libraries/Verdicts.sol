// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Reason, Verdict} from "../Types.sol";

/// @title Reading what the members attested
library Verdicts {
    uint256 private constant FAULT_BYTES = 5;

    /// @notice The verdict has fewer faults than the position that was asked for.
    error NoSuchFault(uint256 position, uint256 faults);

    /// @notice The fault has a reason that does not exist.
    error UnknownReason(uint8 reason);

    /// @notice What two members must have attested for the verdict to stand.
    function hash(Verdict calldata verdict) internal pure returns (bytes32) {
        return keccak256(abi.encode(verdict.passes, verdict.faults));
    }

    /// @notice Whether the client with `index` passed.
    function passed(Verdict calldata verdict, uint32 index) internal pure returns (bool) {
        uint256 position = index >> 3;
        if (position >= verdict.passes.length) return false;
        return (uint8(verdict.passes[position]) >> (index & 7)) & 1 == 1;
    }

    /// @notice The fault at `position`: who failed, and why.
    /// @dev A list that ends within a fault has none.
    function faultAt(Verdict calldata verdict, uint256 position)
        internal
        pure
        returns (uint32 index, Reason reason)
    {
        uint256 size = verdict.faults.length;
        uint256 faults = size % FAULT_BYTES == 0 ? size / FAULT_BYTES : 0;
        if (position >= faults) revert NoSuchFault(position, faults);
        bytes calldata fault = verdict.faults[position * FAULT_BYTES:(position + 1) * FAULT_BYTES];
        index = uint32(bytes4(fault[:4]));
        uint8 code = uint8(fault[4]);
        if (code == 0 || code > uint8(type(Reason).max)) revert UnknownReason(code);
        reason = Reason(code);
    }
}
