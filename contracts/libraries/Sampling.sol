// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Which clients the seed of a round selects for audit
library Sampling {
    bytes32 private constant TAG = keccak256("opfl.v2.seed");

    /// @notice The seed that a beacon signature gives.
    function seedOf(bytes memory signature) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(TAG, signature));
    }

    /// @notice True if `seed` selects `client` at `auditRate`, a probability times 2^64.
    function selects(bytes32 seed, address client, uint128 auditRate) internal pure returns (bool) {
        return uint256(keccak256(abi.encode(seed, client))) >> 192 < auditRate;
    }
}
