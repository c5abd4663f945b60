// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {stdJson} from "forge-std/StdJson.sol";
import {Test} from "forge-std/Test.sol";

/// @title Reading tests/vectors, which the Python tests read as well
abstract contract VectorFile is Test {
    using stdJson for string;

    function load(string memory name) internal view returns (string memory) {
        string memory folder = string.concat(vm.projectRoot(), "/tests/vectors/");
        return vm.readFile(string.concat(folder, name, ".json"));
    }

    /// @dev The path of a field of case number `index`.
    function field(uint256 index, string memory name) internal pure returns (string memory) {
        return string.concat(".cases[", vm.toString(index), "].", name);
    }

    /// @dev The Merkle proof number `index` under `path`, which is empty for a tree of one leaf.
    function proofAt(string memory json, string memory path, uint256 index)
        internal
        pure
        returns (bytes32[] memory)
    {
        return json.readBytes32Array(string.concat(path, "[", vm.toString(index), "]"));
    }

    /// @dev Creates a contract at an address of our choice, running its constructor there.
    function deployTo(address where, bytes memory creationCode) internal {
        vm.etch(where, creationCode);
        (bool ok, bytes memory runtimeCode) = where.call("");
        require(ok, "VectorFile: constructor failed");
        vm.etch(where, runtimeCode);
    }
}
