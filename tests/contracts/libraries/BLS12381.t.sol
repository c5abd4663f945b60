// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Test} from "forge-std/Test.sol";

import {BLS12381} from "contracts/libraries/BLS12381.sol";
import {BadPoints} from "../support/BadPoints.sol";
import {BlsSigner} from "../support/BlsSigner.sol";

/// @dev Library calls that may revert need a frame of their own.
contract BLS12381Harness {
    BLS12381.PackedG2 private _packed;

    function verify(
        bytes calldata signature,
        bytes calldata message,
        bytes calldata domain,
        bytes calldata publicKey
    ) external view returns (bool) {
        return BLS12381.verify(signature, message, domain, publicKey);
    }

    function verifyOnDirtyMemory(
        bytes memory signature,
        bytes memory message,
        bytes memory domain,
        bytes memory publicKey
    ) external view returns (bool) {
        assembly ("memory-safe") {
            mstore(0x00, 1)
        }
        return BLS12381.verify(signature, message, domain, publicKey);
    }

    function addG1(bytes calldata a, bytes calldata b) external view returns (bytes memory) {
        return BLS12381.addG1(a, b);
    }

    function addG2(bytes calldata a, bytes calldata b) external view returns (bytes memory) {
        return BLS12381.addG2(a, b);
    }

    function store(bytes calldata point) external {
        BLS12381.store(_packed, point);
    }

    function load() external view returns (bytes memory) {
        return BLS12381.load(_packed);
    }

    function hashToG1(bytes calldata message, bytes calldata domain)
        external
        view
        returns (bytes memory)
    {
        return BLS12381.hashToG1(message, domain);
    }
}

contract BLS12381Test is Test {
    uint256 internal constant SECRET = 12345;
    bytes internal constant MESSAGE = "message";
    bytes internal constant DOMAIN = "DOMAIN";
    uint256 internal constant FIELD_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 internal constant FIELD_LOW =
        0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;

    BLS12381Harness internal bls = new BLS12381Harness();
    bytes internal key = BlsSigner.publicKey(SECRET);
    bytes internal signature = BlsSigner.sign(SECRET, MESSAGE, DOMAIN);

    // ---- verify ----

    function test_Verify_WhenSignatureIsRight_IsTrue() public view {
        assertTrue(bls.verify(signature, MESSAGE, DOMAIN, key));
    }

    function test_Verify_WhenMessageDiffers_IsFalse() public view {
        assertFalse(bls.verify(signature, "another", DOMAIN, key));
    }

    function test_Verify_WhenDomainDiffers_IsFalse() public view {
        assertFalse(bls.verify(signature, MESSAGE, "ANOTHER", key));
    }

    function test_Verify_WhenKeyDiffers_IsFalse() public view {
        assertFalse(bls.verify(signature, MESSAGE, DOMAIN, BlsSigner.publicKey(SECRET + 1)));
    }

    /// @dev The precompile itself accepts both at once: e(0, x) * e(y, 0) = 1.
    function test_Verify_WhenSignatureOrKeyIsAtInfinity_IsFalse() public view {
        assertFalse(bls.verify(BadPoints.g1Infinity(), MESSAGE, DOMAIN, key));
        assertFalse(bls.verify(signature, MESSAGE, DOMAIN, BadPoints.g2Infinity()));
        assertFalse(bls.verify(BadPoints.g1Infinity(), MESSAGE, DOMAIN, BadPoints.g2Infinity()));
    }

    function test_Verify_WhenSignatureOrKeyIsOffCurve_IsFalse() public view {
        assertFalse(bls.verify(BadPoints.g1OffCurve(), MESSAGE, DOMAIN, key));
        assertFalse(bls.verify(signature, MESSAGE, DOMAIN, BadPoints.g2OffCurve()));
    }

    function test_Verify_WhenSignatureOrKeyIsNotInSubgroup_IsFalse() public view {
        assertFalse(bls.verify(BadPoints.g1OutsideSubgroup(), MESSAGE, DOMAIN, key));
        assertFalse(bls.verify(signature, MESSAGE, DOMAIN, BadPoints.g2OutsideSubgroup()));
        bytes memory shifted = bls.addG1(signature, BadPoints.g1OutsideSubgroup());
        assertFalse(bls.verify(shifted, MESSAGE, DOMAIN, key));
    }

    /// @dev x + p is the same element in another encoding: a signature has one encoding only.
    function test_Verify_WhenFieldElementIsNotReduced_IsFalse() public view {
        bytes memory other = bytes.concat(signature);
        uint256 high;
        uint256 low;
        assembly ("memory-safe") {
            high := mload(add(other, 0x20))
            low := mload(add(other, 0x40))
        }
        unchecked {
            uint256 sum = low + FIELD_LOW;
            high += FIELD_HIGH + (sum < low ? 1 : 0);
            low = sum;
        }
        assembly ("memory-safe") {
            mstore(add(other, 0x20), high)
            mstore(add(other, 0x40), low)
        }
        assertFalse(bls.verify(other, MESSAGE, DOMAIN, key));
    }

    function test_Verify_WhenLengthIsWrong_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 127, 128));
        bls.verify(new bytes(127), MESSAGE, DOMAIN, key);
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 0, 256));
        bls.verify(signature, MESSAGE, DOMAIN, "");
    }

    /// @dev As on a chain before Prague, where a call to the empty address succeeds: even if a one
    /// happens to lie where the answer would be.
    function test_Verify_WhenPrecompileIsMissing_IsFalse() public {
        vm.mockCall(address(0x0f), "", "");
        assertFalse(bls.verify(signature, MESSAGE, DOMAIN, key));
        assertFalse(bls.verifyOnDirtyMemory(signature, MESSAGE, DOMAIN, key));
    }

    function test_Verify_WhenGasIsPlentyAndPointIsMalformed_BurnsLittleGas() public view {
        bytes memory malformed = BadPoints.g1OffCurve();
        uint256 before = gasleft();
        assertFalse(bls.verify{gas: 5_000_000}(malformed, MESSAGE, DOMAIN, key));
        assertLt(before - gasleft(), 200_000);
    }

    // ---- addG1 ----

    function test_AddG1_WhenLengthIsWrong_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 256, 128));
        bls.addG1(key, signature);
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 256, 128));
        bls.addG1(signature, key);
    }

    function test_AddG1_WhenPointIsOffCurve_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.PrecompileFailed.selector, 0x0b));
        bls.addG1{gas: 1_000_000}(signature, BadPoints.g1OffCurve());
    }

    function test_AddG1_WhenPrecompileIsMissing_Reverts() public {
        vm.mockCall(address(0x0b), "", "");
        vm.expectRevert(abi.encodeWithSelector(BLS12381.PrecompileFailed.selector, 0x0b));
        bls.addG1(signature, signature);
    }

    function test_AddG1_WhenPointsAreRight_AddsSignatures() public view {
        bytes memory other = BlsSigner.sign(SECRET + 1, MESSAGE, DOMAIN);
        bytes memory sum = BlsSigner.sign(2 * SECRET + 1, MESSAGE, DOMAIN);
        assertEq(bls.addG1(signature, other), sum);
    }

    // ---- addG2 ----

    function test_AddG2_WhenLengthIsWrong_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 128, 256));
        bls.addG2(signature, key);
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 128, 256));
        bls.addG2(key, signature);
    }

    function test_AddG2_WhenPointIsOffCurve_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.PrecompileFailed.selector, 0x0d));
        bls.addG2{gas: 1_000_000}(key, BadPoints.g2OffCurve());
    }

    function test_AddG2_WhenPointsAreRight_AddsKeys() public view {
        bytes memory sum = BlsSigner.publicKey(2 * SECRET + 1);
        assertEq(bls.addG2(key, BlsSigner.publicKey(SECRET + 1)), sum);
    }

    // ---- hashToG1 ----

    /// @dev The precompile for multiplication refuses points outside the subgroup.
    function test_HashToG1_WhenInputIsOfAnyLength_LandsInTheSubgroup() public view {
        for (uint256 length = 0; length < 300; length += 37) {
            bytes memory point = bls.hashToG1(new bytes(length), new bytes(length % 255));
            (bool ok, bytes memory zero) =
                address(0x0c).staticcall(bytes.concat(point, bytes32(BlsSigner.ORDER)));
            assertTrue(ok);
            assertEq(zero, BadPoints.g1Infinity());
        }
    }

    // ---- store, load ----

    function test_Store_WhenLengthIsWrong_Reverts() public {
        vm.expectRevert(abi.encodeWithSelector(BLS12381.WrongPointLength.selector, 255, 256));
        bls.store(new bytes(255));
    }

    function test_Load_WhenNothingIsStored_IsEmpty() public view {
        assertEq(bls.load().length, 0);
    }

    /// forge-config: default.fuzz.runs = 50
    /// forge-config: ci.fuzz.runs = 500
    function testFuzz_Load_GivesWhatWasStored(uint256 secret) public {
        bytes memory point = BlsSigner.publicKey(bound(secret, 1, BlsSigner.ORDER - 1));
        bls.store(point);
        assertEq(bls.load(), point);
    }
}
