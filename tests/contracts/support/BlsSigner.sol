// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BLS12381} from "contracts/libraries/BLS12381.sol";

/// @title BLS keys and signatures for tests, by the multi-scalar precompiles of EIP-2537
library BlsSigner {
    bytes internal constant SIGNATURE_DOMAIN = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
    bytes internal constant POSSESSION_DOMAIN = "BLS_POP_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";

    /// @dev The order of G1 and G2.
    uint256 internal constant ORDER =
        0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;

    /// @dev The generator of G2.
    bytes internal constant G2 =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb80000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e000000000000000000000000000000000ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801000000000000000000000000000000000606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be";

    function publicKey(uint256 secret) internal view returns (bytes memory key) {
        key = _multiply(address(0x0e), bytes.concat(G2, bytes32(secret)));
    }

    function sign(uint256 secret, bytes memory message) internal view returns (bytes memory) {
        return sign(secret, message, SIGNATURE_DOMAIN);
    }

    function sign(uint256 secret, bytes memory message, bytes memory domain)
        internal
        view
        returns (bytes memory)
    {
        bytes memory point = BLS12381.hashToG1(message, domain);
        return _multiply(address(0x0c), bytes.concat(point, bytes32(secret)));
    }

    function _multiply(address precompile, bytes memory input)
        private
        view
        returns (bytes memory output)
    {
        bool ok;
        (ok, output) = precompile.staticcall(input);
        require(ok, "BlsSigner: precompile failed");
    }
}
