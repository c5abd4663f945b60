// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title BLS signatures with the signature in G1, on the EIP-2537 precompiles
/// @notice Points are in EIP-2537 encoding: 128 bytes in G1, 256 bytes in G2.
/// Messages are hashed to the curve with BLS12381G1_XMD:SHA-256_SSWU_RO_ of RFC 9380.
library BLS12381 {
    /// @notice A precompile refused its input, or this chain does not have it.
    error PrecompileFailed(uint256 precompile);

    /// @notice A point has the wrong number of bytes.
    error WrongPointLength(uint256 given, uint256 required);

    /// @dev A point of G2 as it is stored: EIP-2537 pads every 48 bytes with 16 zeros, which are left
    /// out. All zeros before it is set.
    struct PackedG2 {
        uint256[2] highs;
        uint256[4] lows;
    }

    uint256 internal constant G1_BYTES = 128;
    uint256 internal constant G2_BYTES = 256;

    uint256 private constant MODEXP = 0x05;
    uint256 private constant G1_ADD = 0x0b;
    uint256 private constant G2_ADD = 0x0d;
    uint256 private constant PAIRING = 0x0f;
    uint256 private constant MAP_FP_TO_G1 = 0x10;

    /// @dev Charge of EIP-2537 for two pairs. A malformed point burns all gas that is forwarded.
    uint256 private constant PAIRING_GAS = 102_900;

    uint256 private constant P_HIGH =
        0x000000000000000000000000000000001a0111ea397fe69a4b1ba7b6434bacd7;
    uint256 private constant P_LOW =
        0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;

    /// @dev The negated generator of G2.
    bytes private constant NEGATED_G2 =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb80000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e000000000000000000000000000000000d1b3cc2c7027888be51d9ef691d77bcb679afda66c73f17f9ee3837a55024f78c71363275a75d75d86bab79f74782aa0000000000000000000000000000000013fa4d4a0ad8b1ce186ed5061789213d993923066dddaf1040bc3ff59f825c78df74f2d75467e25e0f55f8a00fa030ed";

    /// @notice True if `signature` is the signature of `message` under `publicKey`.
    /// @dev False, not an error, for points off the curve, outside the subgroup or at infinity.
    function verify(
        bytes memory signature,
        bytes memory message,
        bytes memory domain,
        bytes memory publicKey
    ) internal view returns (bool valid) {
        _requireLength(signature, G1_BYTES);
        _requireLength(publicKey, G2_BYTES);
        if (_isInfinity(signature) || _isInfinity(publicKey)) return false;
        // e(signature, -G2) * e(H(message), publicKey) = 1
        bytes memory pairs =
            bytes.concat(signature, NEGATED_G2, hashToG1(message, domain), publicKey);
        assembly ("memory-safe") {
            let ok := staticcall(PAIRING_GAS, PAIRING, add(pairs, 0x20), mload(pairs), 0x00, 0x20)
            // Before Prague the address is empty and the call succeeds with no data.
            valid := and(and(ok, eq(returndatasize(), 0x20)), eq(mload(0x00), 1))
        }
    }

    /// @notice Stores a point of G2.
    function store(PackedG2 storage packed, bytes memory point) internal {
        _requireLength(point, G2_BYTES);
        uint256[8] memory words = abi.decode(point, (uint256[8]));
        packed.highs = [words[0] << 128 | words[2], words[4] << 128 | words[6]];
        packed.lows = [words[1], words[3], words[5], words[7]];
    }

    /// @notice A stored point of G2; empty before it is set.
    function load(PackedG2 storage packed) internal view returns (bytes memory) {
        uint256[2] memory highs = packed.highs;
        uint256[4] memory lows = packed.lows;
        if (highs[0] | lows[0] | lows[1] == 0) return "";
        return abi.encode(
            highs[0] >> 128,
            lows[0],
            uint128(highs[0]),
            lows[1],
            highs[1] >> 128,
            lows[2],
            uint128(highs[1]),
            lows[3]
        );
    }

    /// @notice The sum of two points of G1.
    function addG1(bytes memory a, bytes memory b) internal view returns (bytes memory) {
        _requireLength(a, G1_BYTES);
        _requireLength(b, G1_BYTES);
        return _call(G1_ADD, bytes.concat(a, b), G1_BYTES);
    }

    /// @notice The sum of two points of G2.
    function addG2(bytes memory a, bytes memory b) internal view returns (bytes memory) {
        _requireLength(a, G2_BYTES);
        _requireLength(b, G2_BYTES);
        return _call(G2_ADD, bytes.concat(a, b), G2_BYTES);
    }

    /// @notice The point of G1 that `message` hashes to under the domain separation tag `domain`.
    function hashToG1(bytes memory message, bytes memory domain)
        internal
        view
        returns (bytes memory)
    {
        (bytes32 b1, bytes32 b2, bytes32 b3, bytes32 b4) = _expandMessage(message, domain);
        return addG1(_mapToG1(b1, b2), _mapToG1(b3, b4));
    }

    /// @dev expand_message_xmd of RFC 9380 with SHA-256, to 128 bytes.
    function _expandMessage(bytes memory message, bytes memory domain)
        private
        pure
        returns (bytes32 b1, bytes32 b2, bytes32 b3, bytes32 b4)
    {
        bytes memory suffix = abi.encodePacked(domain, uint8(domain.length));
        bytes32 b0 = sha256(
            abi.encodePacked(bytes32(0), bytes32(0), message, uint16(128), uint8(0), suffix)
        );
        b1 = sha256(abi.encodePacked(b0, uint8(1), suffix));
        b2 = sha256(abi.encodePacked(b0 ^ b1, uint8(2), suffix));
        b3 = sha256(abi.encodePacked(b0 ^ b2, uint8(3), suffix));
        b4 = sha256(abi.encodePacked(b0 ^ b3, uint8(4), suffix));
    }

    /// @dev Reduces 64 bytes modulo the field's prime and maps the result to the curve.
    function _mapToG1(bytes32 high, bytes32 low) private view returns (bytes memory) {
        bytes memory reduced = _call(
            MODEXP,
            abi.encodePacked(
                uint256(64), uint256(1), uint256(64), high, low, uint8(1), P_HIGH, P_LOW
            ),
            64
        );
        return _call(MAP_FP_TO_G1, reduced, G1_BYTES);
    }

    function _call(uint256 precompile, bytes memory input, uint256 outputBytes)
        private
        view
        returns (bytes memory output)
    {
        output = new bytes(outputBytes);
        bool ok;
        assembly ("memory-safe") {
            ok := staticcall(
                gas(),
                precompile,
                add(input, 0x20),
                mload(input),
                add(output, 0x20),
                outputBytes
            )
            ok := and(ok, eq(returndatasize(), outputBytes))
        }
        if (!ok) revert PrecompileFailed(precompile);
    }

    function _isInfinity(bytes memory point) private pure returns (bool) {
        return keccak256(point) == keccak256(new bytes(point.length));
    }

    function _requireLength(bytes memory point, uint256 required) private pure {
        if (point.length != required) revert WrongPointLength(point.length, required);
    }
}
