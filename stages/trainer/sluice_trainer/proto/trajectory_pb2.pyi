import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sluice_trainer.proto import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    END_REASON_UNSPECIFIED: _ClassVar[EndReason]
    END_REASON_ANSWER: _ClassVar[EndReason]
    END_REASON_INVALID_TOOL_CALL: _ClassVar[EndReason]
    END_REASON_CODE_CALL_BUDGET: _ClassVar[EndReason]
    END_REASON_TURN_BUDGET: _ClassVar[EndReason]
    END_REASON_TOKEN_BUDGET: _ClassVar[EndReason]
    END_REASON_OBSERVATION_DOES_NOT_FIT: _ClassVar[EndReason]
    END_REASON_PROTOCOL_FAULT: _ClassVar[EndReason]
    END_REASON_INFRA_ERROR: _ClassVar[EndReason]
    END_REASON_PROMPT_TOO_LONG: _ClassVar[EndReason]
    END_REASON_REFUSED: _ClassVar[EndReason]
    END_REASON_SANDBOX_BROKEN: _ClassVar[EndReason]

class VersionSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERSION_SOURCE_UNSPECIFIED: _ClassVar[VersionSource]
    VERSION_SOURCE_GIVEN: _ClassVar[VersionSource]
    VERSION_SOURCE_SINGLE: _ClassVar[VersionSource]
    VERSION_SOURCE_DECLARED: _ClassVar[VersionSource]
    VERSION_SOURCE_UNKNOWN: _ClassVar[VersionSource]
    VERSION_SOURCE_BACKWARDS: _ClassVar[VersionSource]

class TurnKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TURN_KIND_UNSPECIFIED: _ClassVar[TurnKind]
    TURN_KIND_TOOL: _ClassVar[TurnKind]
    TURN_KIND_ANSWER: _ClassVar[TurnKind]
    TURN_KIND_INVALID: _ClassVar[TurnKind]

class ExecutionOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXECUTION_OUTCOME_UNSPECIFIED: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_OK: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_ERROR: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_TIMEOUT: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_OUT_OF_MEMORY: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_OUTPUT_LIMIT: _ClassVar[ExecutionOutcome]
    EXECUTION_OUTCOME_KILLED: _ClassVar[ExecutionOutcome]

class VerdictOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_OUTCOME_UNSPECIFIED: _ClassVar[VerdictOutcome]
    VERDICT_OUTCOME_EQUAL: _ClassVar[VerdictOutcome]
    VERDICT_OUTCOME_DIFFERENT: _ClassVar[VerdictOutcome]
    VERDICT_OUTCOME_UNDECIDED: _ClassVar[VerdictOutcome]
END_REASON_UNSPECIFIED: EndReason
END_REASON_ANSWER: EndReason
END_REASON_INVALID_TOOL_CALL: EndReason
END_REASON_CODE_CALL_BUDGET: EndReason
END_REASON_TURN_BUDGET: EndReason
END_REASON_TOKEN_BUDGET: EndReason
END_REASON_OBSERVATION_DOES_NOT_FIT: EndReason
END_REASON_PROTOCOL_FAULT: EndReason
END_REASON_INFRA_ERROR: EndReason
END_REASON_PROMPT_TOO_LONG: EndReason
END_REASON_REFUSED: EndReason
END_REASON_SANDBOX_BROKEN: EndReason
VERSION_SOURCE_UNSPECIFIED: VersionSource
VERSION_SOURCE_GIVEN: VersionSource
VERSION_SOURCE_SINGLE: VersionSource
VERSION_SOURCE_DECLARED: VersionSource
VERSION_SOURCE_UNKNOWN: VersionSource
VERSION_SOURCE_BACKWARDS: VersionSource
TURN_KIND_UNSPECIFIED: TurnKind
TURN_KIND_TOOL: TurnKind
TURN_KIND_ANSWER: TurnKind
TURN_KIND_INVALID: TurnKind
EXECUTION_OUTCOME_UNSPECIFIED: ExecutionOutcome
EXECUTION_OUTCOME_OK: ExecutionOutcome
EXECUTION_OUTCOME_ERROR: ExecutionOutcome
EXECUTION_OUTCOME_TIMEOUT: ExecutionOutcome
EXECUTION_OUTCOME_OUT_OF_MEMORY: ExecutionOutcome
EXECUTION_OUTCOME_OUTPUT_LIMIT: ExecutionOutcome
EXECUTION_OUTCOME_KILLED: ExecutionOutcome
VERDICT_OUTCOME_UNSPECIFIED: VerdictOutcome
VERDICT_OUTCOME_EQUAL: VerdictOutcome
VERDICT_OUTCOME_DIFFERENT: VerdictOutcome
VERDICT_OUTCOME_UNDECIDED: VerdictOutcome

class Trajectory(_message.Message):
    __slots__ = ("prompt", "sample_index", "copy", "prompt_tokens", "turns", "end_reason", "end_detail", "final_text", "code_calls", "executions", "ended_by", "started_at", "ended_at", "failed_attempts", "logprobs_mode", "dialect")
    PROMPT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    END_DETAIL_FIELD_NUMBER: _ClassVar[int]
    FINAL_TEXT_FIELD_NUMBER: _ClassVar[int]
    CODE_CALLS_FIELD_NUMBER: _ClassVar[int]
    EXECUTIONS_FIELD_NUMBER: _ClassVar[int]
    ENDED_BY_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    FAILED_ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_MODE_FIELD_NUMBER: _ClassVar[int]
    DIALECT_FIELD_NUMBER: _ClassVar[int]
    prompt: _work_pb2.Prompt
    sample_index: int
    copy: int
    prompt_tokens: bytes
    turns: _containers.RepeatedCompositeFieldContainer[Turn]
    end_reason: EndReason
    end_detail: str
    final_text: str
    code_calls: int
    executions: int
    ended_by: str
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    failed_attempts: int
    logprobs_mode: str
    dialect: str
    def __init__(self, prompt: _Optional[_Union[_work_pb2.Prompt, _Mapping]] = ..., sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., prompt_tokens: _Optional[bytes] = ..., turns: _Optional[_Iterable[_Union[Turn, _Mapping]]] = ..., end_reason: _Optional[_Union[EndReason, str]] = ..., end_detail: _Optional[str] = ..., final_text: _Optional[str] = ..., code_calls: _Optional[int] = ..., executions: _Optional[int] = ..., ended_by: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., failed_attempts: _Optional[int] = ..., logprobs_mode: _Optional[str] = ..., dialect: _Optional[str] = ...) -> None: ...

class VersionSpan(_message.Message):
    __slots__ = ("version", "count")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    version: int
    count: int
    def __init__(self, version: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Turn(_message.Message):
    __slots__ = ("tokens", "logprobs", "versions", "text", "kind", "invalid_reason", "truncated", "code", "execution", "observation", "glue_tokens", "sample_started_at", "sample_ended_at", "aborts", "digest", "attempts", "version_source", "timeout_observation", "takeovers", "cuts")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    INVALID_REASON_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    GLUE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    ABORTS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    VERSION_SOURCE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_OBSERVATION_FIELD_NUMBER: _ClassVar[int]
    TAKEOVERS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    tokens: bytes
    logprobs: bytes
    versions: _containers.RepeatedCompositeFieldContainer[VersionSpan]
    text: str
    kind: TurnKind
    invalid_reason: str
    truncated: bool
    code: str
    execution: Execution
    observation: str
    glue_tokens: bytes
    sample_started_at: _timestamp_pb2.Timestamp
    sample_ended_at: _timestamp_pb2.Timestamp
    aborts: int
    digest: bytes
    attempts: int
    version_source: VersionSource
    timeout_observation: str
    takeovers: int
    cuts: int
    def __init__(self, tokens: _Optional[bytes] = ..., logprobs: _Optional[bytes] = ..., versions: _Optional[_Iterable[_Union[VersionSpan, _Mapping]]] = ..., text: _Optional[str] = ..., kind: _Optional[_Union[TurnKind, str]] = ..., invalid_reason: _Optional[str] = ..., truncated: _Optional[bool] = ..., code: _Optional[str] = ..., execution: _Optional[_Union[Execution, _Mapping]] = ..., observation: _Optional[str] = ..., glue_tokens: _Optional[bytes] = ..., sample_started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sample_ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., aborts: _Optional[int] = ..., digest: _Optional[bytes] = ..., attempts: _Optional[int] = ..., version_source: _Optional[_Union[VersionSource, str]] = ..., timeout_observation: _Optional[str] = ..., takeovers: _Optional[int] = ..., cuts: _Optional[int] = ...) -> None: ...

class TurnProgress(_message.Message):
    __slots__ = ("group", "sample_index", "attempt", "copy", "turn", "part", "before", "digest", "tokens", "logprobs", "versions", "text", "version_source", "aborts", "cuts", "takeovers", "attempts", "sample_started_at", "ended", "truncated", "written_at")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    TURN_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VERSION_SOURCE_FIELD_NUMBER: _ClassVar[int]
    ABORTS_FIELD_NUMBER: _ClassVar[int]
    CUTS_FIELD_NUMBER: _ClassVar[int]
    TAKEOVERS_FIELD_NUMBER: _ClassVar[int]
    ATTEMPTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_AT_FIELD_NUMBER: _ClassVar[int]
    group: _work_pb2.GroupPlace
    sample_index: int
    attempt: int
    copy: int
    turn: int
    part: int
    before: bytes
    digest: bytes
    tokens: bytes
    logprobs: bytes
    versions: _containers.RepeatedCompositeFieldContainer[VersionSpan]
    text: bytes
    version_source: VersionSource
    aborts: int
    cuts: int
    takeovers: int
    attempts: int
    sample_started_at: _timestamp_pb2.Timestamp
    ended: bool
    truncated: bool
    written_at: _timestamp_pb2.Timestamp
    def __init__(self, group: _Optional[_Union[_work_pb2.GroupPlace, _Mapping]] = ..., sample_index: _Optional[int] = ..., attempt: _Optional[int] = ..., copy: _Optional[int] = ..., turn: _Optional[int] = ..., part: _Optional[int] = ..., before: _Optional[bytes] = ..., digest: _Optional[bytes] = ..., tokens: _Optional[bytes] = ..., logprobs: _Optional[bytes] = ..., versions: _Optional[_Iterable[_Union[VersionSpan, _Mapping]]] = ..., text: _Optional[bytes] = ..., version_source: _Optional[_Union[VersionSource, str]] = ..., aborts: _Optional[int] = ..., cuts: _Optional[int] = ..., takeovers: _Optional[int] = ..., attempts: _Optional[int] = ..., sample_started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[bool] = ..., truncated: _Optional[bool] = ..., written_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class Execution(_message.Message):
    __slots__ = ("call_id", "outcome", "exit_code", "exception", "stdout", "stderr", "stdout_truncated", "stderr_truncated", "stdout_bytes", "stderr_bytes", "timeout_ms", "wall_ms", "cpu_ms", "peak_memory_bytes", "queue_wait_ms", "warm", "image", "sandbox_id", "protections", "queued_at", "started_at", "ended_at", "delivery", "unknown_runs")
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_FIELD_NUMBER: _ClassVar[int]
    STDOUT_FIELD_NUMBER: _ClassVar[int]
    STDERR_FIELD_NUMBER: _ClassVar[int]
    STDOUT_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    STDERR_TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    STDOUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    STDERR_BYTES_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    WALL_MS_FIELD_NUMBER: _ClassVar[int]
    CPU_MS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    WARM_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_ID_FIELD_NUMBER: _ClassVar[int]
    PROTECTIONS_FIELD_NUMBER: _ClassVar[int]
    QUEUED_AT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    ENDED_AT_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_RUNS_FIELD_NUMBER: _ClassVar[int]
    call_id: str
    outcome: ExecutionOutcome
    exit_code: int
    exception: str
    stdout: str
    stderr: str
    stdout_truncated: bool
    stderr_truncated: bool
    stdout_bytes: int
    stderr_bytes: int
    timeout_ms: int
    wall_ms: float
    cpu_ms: float
    peak_memory_bytes: int
    queue_wait_ms: float
    warm: bool
    image: str
    sandbox_id: str
    protections: _containers.RepeatedScalarFieldContainer[str]
    queued_at: _timestamp_pb2.Timestamp
    started_at: _timestamp_pb2.Timestamp
    ended_at: _timestamp_pb2.Timestamp
    delivery: int
    unknown_runs: int
    def __init__(self, call_id: _Optional[str] = ..., outcome: _Optional[_Union[ExecutionOutcome, str]] = ..., exit_code: _Optional[int] = ..., exception: _Optional[str] = ..., stdout: _Optional[str] = ..., stderr: _Optional[str] = ..., stdout_truncated: _Optional[bool] = ..., stderr_truncated: _Optional[bool] = ..., stdout_bytes: _Optional[int] = ..., stderr_bytes: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., wall_ms: _Optional[float] = ..., cpu_ms: _Optional[float] = ..., peak_memory_bytes: _Optional[int] = ..., queue_wait_ms: _Optional[float] = ..., warm: _Optional[bool] = ..., image: _Optional[str] = ..., sandbox_id: _Optional[str] = ..., protections: _Optional[_Iterable[str]] = ..., queued_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., delivery: _Optional[int] = ..., unknown_runs: _Optional[int] = ...) -> None: ...

class CodeCall(_message.Message):
    __slots__ = ("trajectory", "call_id", "requested_at")
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_AT_FIELD_NUMBER: _ClassVar[int]
    trajectory: Trajectory
    call_id: str
    requested_at: _timestamp_pb2.Timestamp
    def __init__(self, trajectory: _Optional[_Union[Trajectory, _Mapping]] = ..., call_id: _Optional[str] = ..., requested_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CodeResult(_message.Message):
    __slots__ = ("trajectory", "call_id", "execution")
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_FIELD_NUMBER: _ClassVar[int]
    trajectory: Trajectory
    call_id: str
    execution: Execution
    def __init__(self, trajectory: _Optional[_Union[Trajectory, _Mapping]] = ..., call_id: _Optional[str] = ..., execution: _Optional[_Union[Execution, _Mapping]] = ...) -> None: ...

class Verdict(_message.Message):
    __slots__ = ("outcome", "method", "reason", "gold_read", "pred_read")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    GOLD_READ_FIELD_NUMBER: _ClassVar[int]
    PRED_READ_FIELD_NUMBER: _ClassVar[int]
    outcome: VerdictOutcome
    method: str
    reason: str
    gold_read: str
    pred_read: str
    def __init__(self, outcome: _Optional[_Union[VerdictOutcome, str]] = ..., method: _Optional[str] = ..., reason: _Optional[str] = ..., gold_read: _Optional[str] = ..., pred_read: _Optional[str] = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("name", "version", "reward", "error")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    reward: float
    error: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., reward: _Optional[float] = ..., error: _Optional[str] = ...) -> None: ...

class Scored(_message.Message):
    __slots__ = ("trajectory", "graded", "ungraded_reason", "reward", "correct", "valid_format", "answer", "verdict", "scores", "scored_at")
    TRAJECTORY_FIELD_NUMBER: _ClassVar[int]
    GRADED_FIELD_NUMBER: _ClassVar[int]
    UNGRADED_REASON_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    CORRECT_FIELD_NUMBER: _ClassVar[int]
    VALID_FORMAT_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    SCORED_AT_FIELD_NUMBER: _ClassVar[int]
    trajectory: Trajectory
    graded: bool
    ungraded_reason: str
    reward: float
    correct: bool
    valid_format: bool
    answer: str
    verdict: Verdict
    scores: _containers.RepeatedCompositeFieldContainer[Score]
    scored_at: _timestamp_pb2.Timestamp
    def __init__(self, trajectory: _Optional[_Union[Trajectory, _Mapping]] = ..., graded: _Optional[bool] = ..., ungraded_reason: _Optional[str] = ..., reward: _Optional[float] = ..., correct: _Optional[bool] = ..., valid_format: _Optional[bool] = ..., answer: _Optional[str] = ..., verdict: _Optional[_Union[Verdict, _Mapping]] = ..., scores: _Optional[_Iterable[_Union[Score, _Mapping]]] = ..., scored_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
