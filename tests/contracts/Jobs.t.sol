// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {JobId, RoundId} from "contracts/Types.sol";
import {Protocol} from "./support/Protocol.sol";

contract GasTest is Protocol {
    function test_commit() public {
        JobId job = startJob(3);
        RoundId round = openFirst(job);
        commit(round, 0);
        commit(round, 1);
        publishBeacon(round);
    }
}
