// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Reading verdicts
/// @notice A verdict is a bitmap of the clients that passed: bit (i & 7), lowest first, of byte
/// (i >> 3) is client i.
library Verdicts {
    /// @dev The lower half of every two, four, eight and sixteen bits, and one in every sixteen.
    uint256 private constant PAIRS = type(uint256).max / 0x3;
    uint256 private constant FOURS = type(uint256).max / 0x5;
    uint256 private constant BYTES = type(uint256).max / 0x11;
    uint256 private constant SIXTEENS = type(uint256).max / 0x101;
    uint256 private constant ONES = type(uint256).max / 0xffff;

    /// @notice True if the client with `index` passed.
    function passed(bytes calldata passes, uint32 index) internal pure returns (bool) {
        uint256 position = index >> 3;
        if (position >= passes.length) return false;
        return (uint8(passes[position]) >> (index & 7)) & 1 == 1;
    }

    /// @notice Number of clients that passed.
    function count(bytes calldata passes) internal pure returns (uint256 total) {
        for (uint256 start = 0; start < passes.length; start += 32) {
            // Bytes behind the end read as zero.
            uint256 word = uint256(bytes32(passes[start:_min(start + 32, passes.length)]));
            // Bits are added up in pairs, these in fours, in bytes and in sixteens, which are
            // multiplied together. No part overflows: a word has 256 bits.
            unchecked {
                word -= (word >> 1) & PAIRS;
                word = (word & FOURS) + ((word >> 2) & FOURS);
                word = (word + (word >> 4)) & BYTES;
                word = (word & SIXTEENS) + ((word >> 8) & SIXTEENS);
                total += (word * ONES) >> 240;
            }
        }
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
