// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The Merkle tree of docs/SPEC.md: sorted pairs, a node without a sibling moves up
library MerkleTree {
    function root(bytes32[] memory leaves) internal pure returns (bytes32) {
        while (leaves.length > 1) leaves = _nextLayer(leaves);
        return leaves[0];
    }

    function proof(bytes32[] memory leaves, uint256 index)
        internal
        pure
        returns (bytes32[] memory path)
    {
        path = new bytes32[](256);
        uint256 length;
        for (; leaves.length > 1; index /= 2) {
            if (index ^ 1 < leaves.length) path[length++] = leaves[index ^ 1];
            leaves = _nextLayer(leaves);
        }
        assembly ("memory-safe") {
            mstore(path, length)
        }
    }

    function _nextLayer(bytes32[] memory nodes) private pure returns (bytes32[] memory layer) {
        layer = new bytes32[]((nodes.length + 1) / 2);
        for (uint256 i = 0; i < layer.length; ++i) {
            bool alone = 2 * i + 1 == nodes.length;
            layer[i] = alone ? nodes[2 * i] : _hashPair(nodes[2 * i], nodes[2 * i + 1]);
        }
    }

    function _hashPair(bytes32 a, bytes32 b) private pure returns (bytes32) {
        return a < b ? keccak256(bytes.concat(a, b)) : keccak256(bytes.concat(b, a));
    }
}
