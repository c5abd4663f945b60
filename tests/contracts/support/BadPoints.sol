// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Points that are no keys and no signatures, in EIP-2537 encoding
library BadPoints {
    /// @dev (1, 1).
    function g1OffCurve() internal pure returns (bytes memory) {
        return bytes.concat(_field(1), _field(1));
    }

    /// @dev (0, 2), a point of order three.
    function g1OutsideSubgroup() internal pure returns (bytes memory) {
        return bytes.concat(_field(0), _field(2));
    }

    function g1Infinity() internal pure returns (bytes memory) {
        return new bytes(128);
    }

    /// @dev (1, 1).
    function g2OffCurve() internal pure returns (bytes memory) {
        return bytes.concat(_field(1), _field(0), _field(1), _field(0));
    }

    /// @dev On the curve at x = 2.
    function g2OutsideSubgroup() internal pure returns (bytes memory) {
        return bytes.concat(
            _field(2),
            _field(0),
            hex"0000000000000000000000000000000018c6b864ae17dc9da64203ffefb966306425a7bc6aeb7c75247438372716284a4173830420cd476ba1a365b95bfcec38",
            hex"00000000000000000000000000000000172e93db764a8400a7d5071b6b6f5de0da2f0f4a063119abca014006b7c40a2cfe291a1924e65db0d6d0fcfbf3bf3d5c"
        );
    }

    function g2Infinity() internal pure returns (bytes memory) {
        return new bytes(256);
    }

    function _field(uint256 value) private pure returns (bytes memory) {
        return abi.encode(uint256(0), value);
    }
}
