// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {JobId, roundOf, RoundId} from "contracts/Types.sol";

/// @dev The types are spelt out again, so that a change of one shows.
contract StatementsTest is Test {
    string internal constant GRADIENT_COMMITMENT =
        "GradientCommitment(uint64 job,uint32 round,address client,bytes32 commitment)";
    string internal constant DELIVERY_RECEIPT =
        "DeliveryReceipt(uint64 job,uint32 round,address client,bool audited)";
    string internal constant ACQUITTAL = "Acquittal(uint64 job,uint32 round,address client)";
    string internal constant ROUND_RESULT =
        "RoundResult(uint64 job,uint32 round,bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)";
    string internal constant DOMAIN =
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";

    function testFuzz_GradientCommitment_IsTheTypedHash(
        uint64 job,
        uint32 number,
        address client,
        bytes32 commitment
    ) public pure {
        assertEq(
            Statements.gradientCommitment(_round(job, number), client, commitment),
            keccak256(
                abi.encode(keccak256(bytes(GRADIENT_COMMITMENT)), job, number, client, commitment)
            )
        );
    }

    function testFuzz_DeliveryReceipt_IsTheTypedHash(
        uint64 job,
        uint32 number,
        address client,
        bool audited
    ) public pure {
        assertEq(
            Statements.deliveryReceipt(_round(job, number), client, audited),
            keccak256(abi.encode(keccak256(bytes(DELIVERY_RECEIPT)), job, number, client, audited))
        );
    }

    function testFuzz_Acquittal_IsTheTypedHash(uint64 job, uint32 number, address client)
        public
        pure
    {
        assertEq(
            Statements.acquittal(_round(job, number), client),
            keccak256(abi.encode(keccak256(bytes(ACQUITTAL)), job, number, client))
        );
    }

    function testFuzz_RoundResult_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 verdict,
        bytes32 aggregate,
        bytes32 model
    ) public pure {
        assertEq(
            Statements.roundResult(_round(job, number), verdict, aggregate, model),
            keccak256(
                abi.encode(keccak256(bytes(ROUND_RESULT)), job, number, verdict, aggregate, model)
            )
        );
    }

    function test_StatementDigest_WhenDomainIsThatOfJobs_FollowsEIP712() public {
        Jobs jobs = new Jobs(IDeposits(address(1)), IBeacon(address(2)), address(3));
        bytes32 separator = keccak256(
            abi.encode(
                keccak256(bytes(DOMAIN)),
                keccak256("opfl_chain"),
                keccak256("1"),
                block.chainid,
                address(jobs)
            )
        );
        bytes32 digest = keccak256(bytes.concat(hex"1901", separator, keccak256("struct")));
        assertEq(jobs.statementDigest(keccak256("struct")), digest);
    }

    function _round(uint64 job, uint32 number) private pure returns (RoundId) {
        return roundOf(JobId.wrap(job), number);
    }
}
