// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {Sampling} from "contracts/libraries/Sampling.sol";
import {AUDIT_ALWAYS} from "contracts/Types.sol";

contract SamplingTest is Test {
    function test_Selects_WhenRateIsZero_SelectsNobody() public pure {
        for (uint160 i = 0; i < 100; ++i) {
            assertFalse(Sampling.selects("seed", address(i), 0));
        }
    }

    function test_Selects_WhenRateIsOne_SelectsEverybody() public pure {
        for (uint160 i = 0; i < 100; ++i) {
            assertTrue(Sampling.selects("seed", address(i), AUDIT_ALWAYS));
        }
    }

    function testFuzz_Selects_SelectsExactlyBelowTheRate(bytes32 seed, address client) public pure {
        uint128 ticket = uint128(uint256(keccak256(abi.encode(seed, client))) >> 192);
        assertFalse(Sampling.selects(seed, client, ticket));
        assertTrue(Sampling.selects(seed, client, ticket + 1));
    }

    /// @dev 10,000 clients at 5%: the standard deviation is 22, the bounds are five of them.
    function test_Selects_WhenManyClientsDraw_SelectsAFractionNearTheRate() public pure {
        uint256 selected;
        for (uint160 i = 0; i < 10_000; ++i) {
            if (Sampling.selects("seed", address(i), AUDIT_ALWAYS / 20)) ++selected;
        }
        assertGt(selected, 390);
        assertLt(selected, 610);
    }

    function testFuzz_SeedOf_IsTheTaggedHash(bytes memory signature) public pure {
        bytes32 expected = keccak256(bytes.concat(keccak256("opfl.v2.seed"), signature));
        assertEq(Sampling.seedOf(signature), expected);
    }
}
