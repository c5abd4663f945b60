// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Verdicts} from "contracts/libraries/Verdicts.sol";

/// @dev Verdicts are read from calldata.
contract VerdictsHarness {
    function passed(bytes calldata passes, uint32 index) external pure returns (bool) {
        return Verdicts.passed(passes, index);
    }

    function count(bytes calldata passes) external pure returns (uint256) {
        return Verdicts.count(passes);
    }
}

contract VerdictsTest is Test {
    VerdictsHarness internal verdicts = new VerdictsHarness();

    function test_Passed_WhenBitmapIsShort_IsFalse() public view {
        assertTrue(verdicts.passed(hex"ff", 7));
        assertFalse(verdicts.passed(hex"ff", 8));
        assertFalse(verdicts.passed(hex"ff", type(uint32).max));
        assertFalse(verdicts.passed("", 0));
    }

    function testFuzz_Passed_AgreesWithANaiveModel(bool[40] memory model) public view {
        bytes memory passes = new bytes(5);
        for (uint256 i = 0; i < model.length; ++i) {
            if (model[i]) passes[i / 8] = bytes1(uint8(passes[i / 8]) + uint8(2 ** (i % 8)));
        }
        for (uint32 i = 0; i < model.length; ++i) {
            assertEq(verdicts.passed(passes, i), model[i]);
        }
    }

    function test_Count_WhenBitmapIsEmptyOrFull_CountsEveryBit() public view {
        assertEq(verdicts.count(""), 0);
        assertEq(verdicts.count(new bytes(100)), 0);
        bytes memory full = new bytes(33);
        for (uint256 i = 0; i < 33; ++i) {
            full[i] = 0xff;
        }
        assertEq(verdicts.count(full), 264);
    }

    /// @dev What lies behind the bitmap in calldata does not count.
    function testFuzz_Count_AgreesWithANaiveModel(bytes memory passes) public view {
        uint256 expected;
        for (uint32 i = 0; i < 8 * passes.length; ++i) {
            if (verdicts.passed(passes, i)) ++expected;
        }
        assertEq(verdicts.count(passes), expected);
    }
}
