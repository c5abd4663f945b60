// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Verdicts} from "contracts/libraries/Verdicts.sol";
import {Reason, Verdict} from "contracts/Types.sol";

/// @dev Verdicts are read from calldata.
contract VerdictsHarness {
    function hash(Verdict calldata verdict) external pure returns (bytes32) {
        return Verdicts.hash(verdict);
    }

    function passed(Verdict calldata verdict, uint32 index) external pure returns (bool) {
        return Verdicts.passed(verdict, index);
    }

    function faultAt(Verdict calldata verdict, uint256 position)
        external
        pure
        returns (uint32, Reason)
    {
        return Verdicts.faultAt(verdict, position);
    }
}

contract VerdictsTest is Test {
    VerdictsHarness internal verdicts = new VerdictsHarness();

    function test_Hash_WhenPaddedWithZeroBytes_Differs() public view {
        assertNotEq(verdicts.hash(Verdict(hex"02", "")), verdicts.hash(Verdict(hex"0200", "")));
    }

    function testFuzz_Hash_IsTheHashOfBothParts(bytes memory passes, bytes memory faults)
        public
        view
    {
        bytes32 expected = keccak256(abi.encode(passes, faults));
        assertEq(verdicts.hash(Verdict(passes, faults)), expected);
    }

    function test_Passed_WhenBitmapIsShort_IsFalse() public view {
        Verdict memory verdict = Verdict(hex"ff", "");
        assertTrue(verdicts.passed(verdict, 7));
        assertFalse(verdicts.passed(verdict, 8));
        assertFalse(verdicts.passed(verdict, type(uint32).max));
        assertFalse(verdicts.passed(Verdict("", ""), 0));
    }

    function testFuzz_Passed_AgreesWithANaiveModel(bool[40] memory model) public view {
        bytes memory passes = new bytes(5);
        for (uint256 i = 0; i < model.length; ++i) {
            if (model[i]) passes[i / 8] = bytes1(uint8(passes[i / 8]) + uint8(2 ** (i % 8)));
        }
        for (uint32 i = 0; i < model.length; ++i) {
            assertEq(verdicts.passed(Verdict(passes, ""), i), model[i]);
        }
    }

    function test_FaultAt_WhenPositionIsBeyondTheFaults_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, 0, 0));
        verdicts.faultAt(Verdict(hex"ff", ""), 0);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, 2, 2));
        verdicts.faultAt(Verdict("", hex"00000001010000000201"), 2);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, type(uint256).max, 2));
        verdicts.faultAt(Verdict("", hex"00000001010000000201"), type(uint256).max);
    }

    function test_FaultAt_WhenFaultsAreRagged_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, 0, 0));
        verdicts.faultAt(Verdict("", hex"00000001"), 0);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.NoSuchFault.selector, 0, 0));
        verdicts.faultAt(Verdict("", hex"000000010100"), 0);
    }

    function test_FaultAt_WhenReasonIsZeroOrUnknown_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Verdicts.UnknownReason.selector, 0));
        verdicts.faultAt(Verdict("", hex"0000000100"), 0);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.UnknownReason.selector, 5));
        verdicts.faultAt(Verdict("", hex"0000000105"), 0);
        vm.expectRevert(abi.encodeWithSelector(Verdicts.UnknownReason.selector, 255));
        verdicts.faultAt(Verdict("", hex"00000001ff"), 0);
    }

    function testFuzz_FaultAt_ReadsWhatWasWritten(uint32[8] memory indices, uint8[8] memory codes)
        public
        view
    {
        Verdict memory verdict;
        for (uint256 i = 0; i < 8; ++i) {
            codes[i] = codes[i] % 4 + 1;
            verdict.faults = abi.encodePacked(verdict.faults, indices[i], codes[i]);
        }
        for (uint256 i = 0; i < 8; ++i) {
            (uint32 index, Reason reason) = verdicts.faultAt(verdict, i);
            assertEq(index, indices[i]);
            assertEq(uint8(reason), codes[i]);
        }
    }
}
