// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RoundId} from "../Types.sol";

/// @title The EIP-712 structs that clients and members sign off chain
/// @notice All are signed under the domain of the Jobs contract.
library Statements {
    bytes32 private constant GRADIENT_COMMITMENT =
        keccak256("GradientCommitment(uint64 job,uint32 round,address client,bytes32 commitment)");
    bytes32 private constant DELIVERY_RECEIPT =
        keccak256("DeliveryReceipt(uint64 job,uint32 round,address client,bool audited)");
    bytes32 private constant ACQUITTAL =
        keccak256("Acquittal(uint64 job,uint32 round,address client)");
    bytes32 private constant ROUND_RESULT = keccak256(
        "RoundResult(uint64 job,uint32 round,bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)"
    );

    /// @notice Signed by a client: its commitment, to be relayed in a batch.
    function gradientCommitment(RoundId round, address client, bytes32 commitment)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(
            abi.encode(GRADIENT_COMMITMENT, round.job(), round.number(), client, commitment)
        );
    }

    /// @notice Signed by a member: it holds the client's shares, and the audit inputs if `audited`.
    function deliveryReceipt(RoundId round, address client, bool audited)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(DELIVERY_RECEIPT, round.job(), round.number(), client, audited));
    }

    /// @notice Signed by a member: a second replay found no fault.
    function acquittal(RoundId round, address client) internal pure returns (bytes32) {
        return keccak256(abi.encode(ACQUITTAL, round.job(), round.number(), client));
    }

    /// @notice Signed by a member: what the round's accepted contributions add up to.
    function roundResult(
        RoundId round,
        bytes32 verdictHash,
        bytes32 aggregateHash,
        bytes32 modelHash
    ) internal pure returns (bytes32) {
        return keccak256(
            abi.encode(
                ROUND_RESULT, round.job(), round.number(), verdictHash, aggregateHash, modelHash
            )
        );
    }
}
