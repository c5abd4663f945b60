// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BatchProof, JobId, MemberFault, Reason, RoundId, Slash, Verdict} from "../Types.sol";

/// @title Slashing: what a verdict costs
/// @notice A client's slash is requested, can be vetoed, and is executed, at most once for one
/// (client, round). The amount is set aside when it is requested and never exceeds the deposit. A
/// member's fault shows on chain, so its penalty is taken at once.
interface ISlashing {
    /// @notice A slash was requested; `captured` was set aside.
    event SlashRequested(
        RoundId indexed round,
        address indexed client,
        Reason reason,
        uint96 captured,
        uint32 executableAt
    );

    /// @notice The slash was vetoed and what was set aside went back.
    event SlashVetoed(RoundId indexed round, address indexed client, uint96 released);

    /// @notice What was set aside was distributed.
    event SlashExecuted(RoundId indexed round, address indexed client, uint96 amount);

    /// @notice A member paid for a fault.
    event MemberPenalised(
        RoundId indexed round, address indexed member, MemberFault fault, uint96 amount
    );

    /// @notice The contracts do not point at each other.
    error Miswired();

    /// @notice The round has no verdict: nobody loses money.
    error RoundUndecided(RoundId round);

    /// @notice The verdict is not the one that was decided.
    error WrongVerdict(bytes32 given, bytes32 decided);

    /// @notice The fault is another client's.
    error FaultOfAnotherClient(uint32 faultIndex, uint32 clientIndex);

    /// @notice The verdict says that the client passed.
    error ClientPassed(RoundId round, address client);

    /// @notice The client was not selected for audit, so no replay can have failed.
    error ClientNotAudited(RoundId round, address client);

    /// @notice The members decided before the time for delivery was over.
    error DecidedBeforeDelivery(uint32 decidedAt, uint32 deliverDeadline);

    /// @notice Slashes are requested until the deadline.
    error RequestPhaseOver(uint32 deadline, uint256 currentBlock);

    /// @notice The client did not commit directly, and the batch proof does not hold or the client
    /// had asked for its deposit before the round opened.
    error NotInBatch(RoundId round, address client);

    /// @notice The commitment in the batch was not signed by the client.
    error NotSignedByClient(address signer, address client);

    /// @notice There is one slash at most for one client and round.
    error AlreadyRequested(RoundId round, address client);

    /// @notice No slash is pending.
    error NotPending(RoundId round, address client);

    /// @notice The veto window is over.
    error VetoPhaseOver(uint32 executableAt, uint256 currentBlock);

    /// @notice The veto window is open.
    error VetoPhaseOpen(uint32 executableAt, uint256 currentBlock);

    /// @notice Receipts answer only the charge that shares were not delivered.
    error ReceiptsDoNotApply(Reason reason);

    /// @notice The member is not at fault.
    error NoFault(RoundId round, address member, MemberFault fault);

    /// @notice The member has paid for this already.
    error AlreadyPenalised(RoundId round, address member, MemberFault fault);

    /// @notice Requests the slash of a client for a fault in the decided verdict. Anyone may.
    /// @param position Which fault of the verdict.
    /// @param proof For a client that committed through a batch; ignored for a direct commitment.
    function request(
        RoundId round,
        address client,
        Verdict calldata verdict,
        uint256 position,
        BatchProof calldata proof
    ) external;

    /// @notice Stops a slash for shares not delivered, with two members' `DeliveryReceipt`s. In an
    /// audited round these must be receipts for the audit inputs as well.
    function vetoWithReceipts(RoundId round, address client, bytes[2] calldata signatures) external;

    /// @notice Stops a slash with two members' `Acquittal`s, which they sign when a second replay
    /// passes.
    function vetoWithAcquittals(RoundId round, address client, bytes[2] calldata signatures)
        external;

    /// @notice Executes a slash whose veto window is over. Anyone may.
    function execute(RoundId round, address client) external;

    /// @notice Takes the penalty for a fault of a member in a decided round. Anyone may call it.
    function penaliseMember(RoundId round, address member, MemberFault fault) external;

    /// @notice The slash of a client for a round.
    function slashOf(RoundId round, address client) external view returns (Slash memory);

    /// @notice Whether a member has paid for a fault.
    function isPenalised(RoundId round, address member, MemberFault fault)
        external
        view
        returns (bool);
}
