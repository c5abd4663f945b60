// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Reading verdicts
/// @notice A verdict is a bitmap of the clients that passed: bit (i & 7), lowest first, of byte
/// (i >> 3) is client i.
library Verdicts {
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
            // Kernighan's method: a step for each bit that is set.
            while (word != 0) {
                // The word is not zero.
                unchecked {
                    word &= word - 1;
                    ++total;
                }
            }
        }
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
