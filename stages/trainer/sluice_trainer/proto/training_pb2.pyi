import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from sluice_trainer.proto import trajectory_pb2 as _trajectory_pb2
from sluice_trainer.proto import work_pb2 as _work_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Closing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLOSING_UNSPECIFIED: _ClassVar[Closing]
    CLOSING_USED: _ClassVar[Closing]
    CLOSING_DEGENERATE: _ClassVar[Closing]
    CLOSING_DROPPED: _ClassVar[Closing]

class MemberFate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEMBER_FATE_UNSPECIFIED: _ClassVar[MemberFate]
    MEMBER_FATE_USED: _ClassVar[MemberFate]
    MEMBER_FATE_DEGENERATE: _ClassVar[MemberFate]
    MEMBER_FATE_UNGRADED: _ClassVar[MemberFate]
    MEMBER_FATE_SHORT_GROUP: _ClassVar[MemberFate]
    MEMBER_FATE_MISSING: _ClassVar[MemberFate]

class TokenReduction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOKEN_REDUCTION_UNSPECIFIED: _ClassVar[TokenReduction]
    TOKEN_REDUCTION_SUM: _ClassVar[TokenReduction]
    TOKEN_REDUCTION_MEAN: _ClassVar[TokenReduction]

class BatchFate(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BATCH_FATE_UNSPECIFIED: _ClassVar[BatchFate]
    BATCH_FATE_TRAINED: _ClassVar[BatchFate]
    BATCH_FATE_ZERO_ADVANTAGE: _ClassVar[BatchFate]
    BATCH_FATE_STALE: _ClassVar[BatchFate]
    BATCH_FATE_TOO_LONG: _ClassVar[BatchFate]
    BATCH_FATE_NO_POLICY_TOKENS: _ClassVar[BatchFate]
    BATCH_FATE_CUSTODY: _ClassVar[BatchFate]

class CorrectionKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CORRECTION_KIND_UNSPECIFIED: _ClassVar[CorrectionKind]
    CORRECTION_KIND_TRUNCATE: _ClassVar[CorrectionKind]
    CORRECTION_KIND_MASK: _ClassVar[CorrectionKind]
CLOSING_UNSPECIFIED: Closing
CLOSING_USED: Closing
CLOSING_DEGENERATE: Closing
CLOSING_DROPPED: Closing
MEMBER_FATE_UNSPECIFIED: MemberFate
MEMBER_FATE_USED: MemberFate
MEMBER_FATE_DEGENERATE: MemberFate
MEMBER_FATE_UNGRADED: MemberFate
MEMBER_FATE_SHORT_GROUP: MemberFate
MEMBER_FATE_MISSING: MemberFate
TOKEN_REDUCTION_UNSPECIFIED: TokenReduction
TOKEN_REDUCTION_SUM: TokenReduction
TOKEN_REDUCTION_MEAN: TokenReduction
BATCH_FATE_UNSPECIFIED: BatchFate
BATCH_FATE_TRAINED: BatchFate
BATCH_FATE_ZERO_ADVANTAGE: BatchFate
BATCH_FATE_STALE: BatchFate
BATCH_FATE_TOO_LONG: BatchFate
BATCH_FATE_NO_POLICY_TOKENS: BatchFate
BATCH_FATE_CUSTODY: BatchFate
CORRECTION_KIND_UNSPECIFIED: CorrectionKind
CORRECTION_KIND_TRUNCATE: CorrectionKind
CORRECTION_KIND_MASK: CorrectionKind

class GroupMember(_message.Message):
    __slots__ = ("scored", "taken_at")
    SCORED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_AT_FIELD_NUMBER: _ClassVar[int]
    scored: _trajectory_pb2.Scored
    taken_at: _timestamp_pb2.Timestamp
    def __init__(self, scored: _Optional[_Union[_trajectory_pb2.Scored, _Mapping]] = ..., taken_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class MemberClosing(_message.Message):
    __slots__ = ("sample_index", "copy", "fate", "reward", "advantage", "attempt", "refilled", "correct", "end_reason")
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    FATE_FIELD_NUMBER: _ClassVar[int]
    REWARD_FIELD_NUMBER: _ClassVar[int]
    ADVANTAGE_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    REFILLED_FIELD_NUMBER: _ClassVar[int]
    CORRECT_FIELD_NUMBER: _ClassVar[int]
    END_REASON_FIELD_NUMBER: _ClassVar[int]
    sample_index: int
    copy: int
    fate: MemberFate
    reward: float
    advantage: float
    attempt: int
    refilled: bool
    correct: bool
    end_reason: _trajectory_pb2.EndReason
    def __init__(self, sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., fate: _Optional[_Union[MemberFate, str]] = ..., reward: _Optional[float] = ..., advantage: _Optional[float] = ..., attempt: _Optional[int] = ..., refilled: _Optional[bool] = ..., correct: _Optional[bool] = ..., end_reason: _Optional[_Union[_trajectory_pb2.EndReason, str]] = ...) -> None: ...

class GroupClosed(_message.Message):
    __slots__ = ("group", "question_id", "data_source", "mode", "group_size", "groups_in_step", "attempt", "closing", "reason", "members", "graded", "reward_mean", "opened_at", "closed_at", "detail")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCE_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_IN_STEP_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    GRADED_FIELD_NUMBER: _ClassVar[int]
    REWARD_MEAN_FIELD_NUMBER: _ClassVar[int]
    OPENED_AT_FIELD_NUMBER: _ClassVar[int]
    CLOSED_AT_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    group: _work_pb2.GroupPlace
    question_id: str
    data_source: str
    mode: _work_pb2.Mode
    group_size: int
    groups_in_step: int
    attempt: int
    closing: Closing
    reason: str
    members: _containers.RepeatedCompositeFieldContainer[MemberClosing]
    graded: int
    reward_mean: float
    opened_at: _timestamp_pb2.Timestamp
    closed_at: _timestamp_pb2.Timestamp
    detail: str
    def __init__(self, group: _Optional[_Union[_work_pb2.GroupPlace, _Mapping]] = ..., question_id: _Optional[str] = ..., data_source: _Optional[str] = ..., mode: _Optional[_Union[_work_pb2.Mode, str]] = ..., group_size: _Optional[int] = ..., groups_in_step: _Optional[int] = ..., attempt: _Optional[int] = ..., closing: _Optional[_Union[Closing, str]] = ..., reason: _Optional[str] = ..., members: _Optional[_Iterable[_Union[MemberClosing, _Mapping]]] = ..., graded: _Optional[int] = ..., reward_mean: _Optional[float] = ..., opened_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., closed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., detail: _Optional[str] = ...) -> None: ...

class MemberBatched(_message.Message):
    __slots__ = ("slot", "sample_index", "copy", "fate", "detail", "micro_batch", "loss_tokens", "staleness")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    FATE_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    MICRO_BATCH_FIELD_NUMBER: _ClassVar[int]
    LOSS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_FIELD_NUMBER: _ClassVar[int]
    slot: int
    sample_index: int
    copy: int
    fate: BatchFate
    detail: str
    micro_batch: int
    loss_tokens: int
    staleness: int
    def __init__(self, slot: _Optional[int] = ..., sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., fate: _Optional[_Union[BatchFate, str]] = ..., detail: _Optional[str] = ..., micro_batch: _Optional[int] = ..., loss_tokens: _Optional[int] = ..., staleness: _Optional[int] = ...) -> None: ...

class StepBatch(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "micro_batches", "n", "clip_low", "clip_high", "token_reduction", "policy_version_min", "policy_version_max", "groups_used", "groups_degenerate", "groups_dropped", "members", "data", "loss_tokens", "padded_tokens", "batched_at", "protocol_faults", "infra_errors", "digest", "correction")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MICRO_BATCHES_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    CLIP_LOW_FIELD_NUMBER: _ClassVar[int]
    CLIP_HIGH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_REDUCTION_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    GROUPS_USED_FIELD_NUMBER: _ClassVar[int]
    GROUPS_DEGENERATE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_DROPPED_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LOSS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    PADDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BATCHED_AT_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FAULTS_FIELD_NUMBER: _ClassVar[int]
    INFRA_ERRORS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CORRECTION_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    micro_batches: int
    n: int
    clip_low: float
    clip_high: float
    token_reduction: TokenReduction
    policy_version_min: int
    policy_version_max: int
    groups_used: int
    groups_degenerate: int
    groups_dropped: int
    members: _containers.RepeatedCompositeFieldContainer[MemberBatched]
    data: int
    loss_tokens: int
    padded_tokens: int
    batched_at: _timestamp_pb2.Timestamp
    protocol_faults: int
    infra_errors: int
    digest: bytes
    correction: Correction
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., micro_batches: _Optional[int] = ..., n: _Optional[int] = ..., clip_low: _Optional[float] = ..., clip_high: _Optional[float] = ..., token_reduction: _Optional[_Union[TokenReduction, str]] = ..., policy_version_min: _Optional[int] = ..., policy_version_max: _Optional[int] = ..., groups_used: _Optional[int] = ..., groups_degenerate: _Optional[int] = ..., groups_dropped: _Optional[int] = ..., members: _Optional[_Iterable[_Union[MemberBatched, _Mapping]]] = ..., data: _Optional[int] = ..., loss_tokens: _Optional[int] = ..., padded_tokens: _Optional[int] = ..., batched_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., protocol_faults: _Optional[int] = ..., infra_errors: _Optional[int] = ..., digest: _Optional[bytes] = ..., correction: _Optional[_Union[Correction, _Mapping]] = ...) -> None: ...

class Correction(_message.Message):
    __slots__ = ("kind", "by_sequence", "low", "high")
    KIND_FIELD_NUMBER: _ClassVar[int]
    BY_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    kind: CorrectionKind
    by_sequence: bool
    low: float
    high: float
    def __init__(self, kind: _Optional[_Union[CorrectionKind, str]] = ..., by_sequence: _Optional[bool] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class MicroBatch(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "index", "data", "padded_tokens", "scale", "clip_low", "clip_high", "token_reduction", "digest")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    PADDED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    CLIP_LOW_FIELD_NUMBER: _ClassVar[int]
    CLIP_HIGH_FIELD_NUMBER: _ClassVar[int]
    TOKEN_REDUCTION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    index: int
    data: _containers.RepeatedCompositeFieldContainer[Datum]
    padded_tokens: int
    scale: float
    clip_low: float
    clip_high: float
    token_reduction: TokenReduction
    digest: bytes
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., index: _Optional[int] = ..., data: _Optional[_Iterable[_Union[Datum, _Mapping]]] = ..., padded_tokens: _Optional[int] = ..., scale: _Optional[float] = ..., clip_low: _Optional[float] = ..., clip_high: _Optional[float] = ..., token_reduction: _Optional[_Union[TokenReduction, str]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class Datum(_message.Message):
    __slots__ = ("slot", "sample_index", "copy", "input_tokens", "target_tokens", "behaviour_logprobs", "advantages", "loss_mask", "policy_version_min", "policy_version_max")
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    INPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    BEHAVIOUR_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    ADVANTAGES_FIELD_NUMBER: _ClassVar[int]
    LOSS_MASK_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MIN_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_MAX_FIELD_NUMBER: _ClassVar[int]
    slot: int
    sample_index: int
    copy: int
    input_tokens: bytes
    target_tokens: bytes
    behaviour_logprobs: bytes
    advantages: bytes
    loss_mask: bytes
    policy_version_min: int
    policy_version_max: int
    def __init__(self, slot: _Optional[int] = ..., sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., input_tokens: _Optional[bytes] = ..., target_tokens: _Optional[bytes] = ..., behaviour_logprobs: _Optional[bytes] = ..., advantages: _Optional[bytes] = ..., loss_mask: _Optional[bytes] = ..., policy_version_min: _Optional[int] = ..., policy_version_max: _Optional[int] = ...) -> None: ...

class PolicyUpdate(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "policy_version", "trained", "inference_url", "model", "published_at", "server_version")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    TRAINED_FIELD_NUMBER: _ClassVar[int]
    INFERENCE_URL_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PUBLISHED_AT_FIELD_NUMBER: _ClassVar[int]
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    policy_version: int
    trained: bool
    inference_url: str
    model: str
    published_at: _timestamp_pb2.Timestamp
    server_version: str
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., policy_version: _Optional[int] = ..., trained: _Optional[bool] = ..., inference_url: _Optional[str] = ..., model: _Optional[str] = ..., published_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., server_version: _Optional[str] = ...) -> None: ...

class TrainerReport(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "policy_version", "skipped", "loss", "ratio_mean", "ratio_max", "clip_fraction_low", "clip_fraction_high", "entropy", "gradient_norm", "data", "loss_tokens", "duration_ms", "reported_at", "extra")
    class ExtraEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    SKIPPED_FIELD_NUMBER: _ClassVar[int]
    LOSS_FIELD_NUMBER: _ClassVar[int]
    RATIO_MEAN_FIELD_NUMBER: _ClassVar[int]
    RATIO_MAX_FIELD_NUMBER: _ClassVar[int]
    CLIP_FRACTION_LOW_FIELD_NUMBER: _ClassVar[int]
    CLIP_FRACTION_HIGH_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    GRADIENT_NORM_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LOSS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    REPORTED_AT_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    policy_version: int
    skipped: bool
    loss: float
    ratio_mean: float
    ratio_max: float
    clip_fraction_low: float
    clip_fraction_high: float
    entropy: float
    gradient_norm: float
    data: int
    loss_tokens: int
    duration_ms: float
    reported_at: _timestamp_pb2.Timestamp
    extra: _containers.ScalarMap[str, float]
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., policy_version: _Optional[int] = ..., skipped: _Optional[bool] = ..., loss: _Optional[float] = ..., ratio_mean: _Optional[float] = ..., ratio_max: _Optional[float] = ..., clip_fraction_low: _Optional[float] = ..., clip_fraction_high: _Optional[float] = ..., entropy: _Optional[float] = ..., gradient_norm: _Optional[float] = ..., data: _Optional[int] = ..., loss_tokens: _Optional[int] = ..., duration_ms: _Optional[float] = ..., reported_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., extra: _Optional[_Mapping[str, float]] = ...) -> None: ...

class TrainerAnnotation(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "slot", "sample_index", "copy", "policy_version", "logprobs", "behaviour_logprobs", "entropy", "annotated_at")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    BEHAVIOUR_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    ENTROPY_FIELD_NUMBER: _ClassVar[int]
    ANNOTATED_AT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    slot: int
    sample_index: int
    copy: int
    policy_version: int
    logprobs: bytes
    behaviour_logprobs: bytes
    entropy: bytes
    annotated_at: _timestamp_pb2.Timestamp
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., slot: _Optional[int] = ..., sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., policy_version: _Optional[int] = ..., logprobs: _Optional[bytes] = ..., behaviour_logprobs: _Optional[bytes] = ..., entropy: _Optional[bytes] = ..., annotated_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class DeadLetter(_message.Message):
    __slots__ = ("stage", "source_topic", "source_partition", "source_offset", "key", "value", "headers", "error_type", "error", "delivery_count", "origin", "failed_at")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOPIC_FIELD_NUMBER: _ClassVar[int]
    SOURCE_PARTITION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ERROR_TYPE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    DELIVERY_COUNT_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    FAILED_AT_FIELD_NUMBER: _ClassVar[int]
    stage: str
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes
    value: bytes
    headers: _containers.RepeatedCompositeFieldContainer[RecordHeader]
    error_type: str
    error: str
    delivery_count: int
    origin: _work_pb2.Origin
    failed_at: _timestamp_pb2.Timestamp
    def __init__(self, stage: _Optional[str] = ..., source_topic: _Optional[str] = ..., source_partition: _Optional[int] = ..., source_offset: _Optional[int] = ..., key: _Optional[bytes] = ..., value: _Optional[bytes] = ..., headers: _Optional[_Iterable[_Union[RecordHeader, _Mapping]]] = ..., error_type: _Optional[str] = ..., error: _Optional[str] = ..., delivery_count: _Optional[int] = ..., origin: _Optional[_Union[_work_pb2.Origin, _Mapping]] = ..., failed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class RecordHeader(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: bytes
    def __init__(self, key: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...
