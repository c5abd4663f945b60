// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {IBeacon} from "contracts/interfaces/IBeacon.sol";
import {IDeposits} from "contracts/interfaces/IDeposits.sol";
import {IRounds} from "contracts/interfaces/IRounds.sol";
import {Jobs} from "contracts/Jobs.sol";
import {Statements} from "contracts/libraries/Statements.sol";
import {JobId, MemberFault, Outcome, roundOf, RoundId} from "contracts/Types.sol";

/// @dev The types are spelt out again, so that a change of one shows.
contract StatementsTest is Test {
    string internal constant DOMAIN =
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
    string internal constant CONTRIBUTION =
        "Contribution(uint64 job,uint32 round,bytes32 opening,address client,bytes32 contentHash)";
    string internal constant ROLL =
        "Roll(uint64 job,uint32 round,bytes32 opening,bytes32 root,uint32 count,bytes32 pairsHash)";
    string internal constant ROUND_RESULT =
        "RoundResult(uint64 job,uint32 round,bytes32 opening,bytes32 verdictHash,bytes32 aggregateHash,bytes32 modelHash)";
    string internal constant AUDIT_OUTCOME =
        "AuditOutcome(uint64 job,uint32 round,bytes32 opening,address client,uint8 outcome)";
    string internal constant MEMBER_MESSAGE =
        "MemberMessage(uint64 job,uint32 round,bytes32 opening,uint32 slot,bytes32 contentHash)";
    string internal constant MEMBER_FAULT =
        "MemberFault(uint64 job,uint32 round,bytes32 opening,address member,uint8 fault)";
    string internal constant SEAT_CHANGE =
        "SeatChange(uint64 job,uint8 epoch,uint8 seat,address standby)";

    function testFuzz_Contribution_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        address client,
        bytes32 content
    ) public pure {
        assertEq(
            Statements.contribution(_round(job, number), opening, client, content),
            keccak256(abi.encode(_type(CONTRIBUTION), job, number, opening, client, content))
        );
    }

    function testFuzz_Roll_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        bytes32 root,
        uint32 count,
        bytes32 pairsHash
    ) public pure {
        assertEq(
            Statements.roll(_round(job, number), opening, root, count, pairsHash),
            keccak256(abi.encode(_type(ROLL), job, number, opening, root, count, pairsHash))
        );
    }

    function testFuzz_RoundResult_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        bytes32 verdict,
        bytes32 aggregate,
        bytes32 model
    ) public pure {
        assertEq(
            Statements.roundResult(_round(job, number), opening, verdict, aggregate, model),
            keccak256(
                abi.encode(_type(ROUND_RESULT), job, number, opening, verdict, aggregate, model)
            )
        );
    }

    function testFuzz_AuditOutcome_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        address client,
        uint8 code
    ) public pure {
        code = uint8(bound(code, 0, 3));
        assertEq(
            Statements.auditOutcome(_round(job, number), opening, client, Outcome(code)),
            keccak256(abi.encode(_type(AUDIT_OUTCOME), job, number, opening, client, code))
        );
    }

    function testFuzz_MemberMessage_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        uint32 slot,
        bytes32 content
    ) public pure {
        assertEq(
            Statements.memberMessage(_round(job, number), opening, slot, content),
            keccak256(abi.encode(_type(MEMBER_MESSAGE), job, number, opening, slot, content))
        );
    }

    function testFuzz_MemberFault_IsTheTypedHash(
        uint64 job,
        uint32 number,
        bytes32 opening,
        address member,
        uint8 code
    ) public pure {
        code = uint8(bound(code, 0, 5));
        assertEq(
            Statements.memberFault(_round(job, number), opening, member, MemberFault(code)),
            keccak256(abi.encode(_type(MEMBER_FAULT), job, number, opening, member, code))
        );
    }

    function testFuzz_SeatChange_IsTheTypedHash(
        uint64 job,
        uint8 epoch,
        uint8 seat,
        address standby
    ) public pure {
        assertEq(
            Statements.seatChange(JobId.wrap(job), epoch, seat, standby),
            keccak256(abi.encode(_type(SEAT_CHANGE), job, epoch, seat, standby))
        );
    }

    function test_StatementDigest_WhenDomainIsThatOfJobs_FollowsTheStandard() public {
        Jobs jobs =
            new Jobs(IDeposits(address(1)), IBeacon(address(2)), IRounds(address(3)), address(4));
        bytes32 separator = keccak256(
            abi.encode(
                _type(DOMAIN), keccak256("opfl_chain"), keccak256("2"), block.chainid, address(jobs)
            )
        );
        bytes32 digest = keccak256(bytes.concat(hex"1901", separator, keccak256("struct")));
        assertEq(jobs.statementDigest(keccak256("struct")), digest);
    }

    function _type(string memory encoding) private pure returns (bytes32) {
        return keccak256(bytes(encoding));
    }

    function _round(uint64 job, uint32 number) private pure returns (RoundId) {
        return roundOf(JobId.wrap(job), number);
    }
}
