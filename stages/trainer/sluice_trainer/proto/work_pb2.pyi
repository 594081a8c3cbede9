import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    MODE_TRAIN: _ClassVar[Mode]
    MODE_EVAL: _ClassVar[Mode]
MODE_UNSPECIFIED: Mode
MODE_TRAIN: Mode
MODE_EVAL: Mode

class GroupPlace(_message.Message):
    __slots__ = ("run_id", "incarnation", "step", "slot")
    RUN_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    run_id: str
    incarnation: int
    step: int
    slot: int
    def __init__(self, run_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., step: _Optional[int] = ..., slot: _Optional[int] = ...) -> None: ...

class Origin(_message.Message):
    __slots__ = ("group", "sample_index", "copy", "attempt", "question_id", "group_size", "groups_in_step", "mode", "data_source")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDEX_FIELD_NUMBER: _ClassVar[int]
    COPY_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_IN_STEP_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCE_FIELD_NUMBER: _ClassVar[int]
    group: GroupPlace
    sample_index: int
    copy: int
    attempt: int
    question_id: str
    group_size: int
    groups_in_step: int
    mode: Mode
    data_source: str
    def __init__(self, group: _Optional[_Union[GroupPlace, _Mapping]] = ..., sample_index: _Optional[int] = ..., copy: _Optional[int] = ..., attempt: _Optional[int] = ..., question_id: _Optional[str] = ..., group_size: _Optional[int] = ..., groups_in_step: _Optional[int] = ..., mode: _Optional[_Union[Mode, str]] = ..., data_source: _Optional[str] = ...) -> None: ...

class Problem(_message.Message):
    __slots__ = ("question_id", "question", "answer", "data_source")
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    DATA_SOURCE_FIELD_NUMBER: _ClassVar[int]
    question_id: str
    question: str
    answer: str
    data_source: str
    def __init__(self, question_id: _Optional[str] = ..., question: _Optional[str] = ..., answer: _Optional[str] = ..., data_source: _Optional[str] = ...) -> None: ...

class Budgets(_message.Message):
    __slots__ = ("code_calls", "turns", "trajectory_tokens", "turn_tokens", "observation_tokens", "execution_timeout_ms")
    CODE_CALLS_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    TRAJECTORY_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TURN_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    code_calls: int
    turns: int
    trajectory_tokens: int
    turn_tokens: int
    observation_tokens: int
    execution_timeout_ms: int
    def __init__(self, code_calls: _Optional[int] = ..., turns: _Optional[int] = ..., trajectory_tokens: _Optional[int] = ..., turn_tokens: _Optional[int] = ..., observation_tokens: _Optional[int] = ..., execution_timeout_ms: _Optional[int] = ...) -> None: ...

class SamplingParameters(_message.Message):
    __slots__ = ("temperature", "top_p", "top_k")
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    temperature: float
    top_p: float
    top_k: int
    def __init__(self, temperature: _Optional[float] = ..., top_p: _Optional[float] = ..., top_k: _Optional[int] = ...) -> None: ...

class Prompt(_message.Message):
    __slots__ = ("group", "problem", "group_size", "groups_in_step", "budgets", "sampling", "mode", "tool_enabled", "tool_protocol", "attempt", "sample_indices", "run_seed", "epoch", "fed_at")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    GROUP_SIZE_FIELD_NUMBER: _ClassVar[int]
    GROUPS_IN_STEP_FIELD_NUMBER: _ClassVar[int]
    BUDGETS_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TOOL_ENABLED_FIELD_NUMBER: _ClassVar[int]
    TOOL_PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_INDICES_FIELD_NUMBER: _ClassVar[int]
    RUN_SEED_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FED_AT_FIELD_NUMBER: _ClassVar[int]
    group: GroupPlace
    problem: Problem
    group_size: int
    groups_in_step: int
    budgets: Budgets
    sampling: SamplingParameters
    mode: Mode
    tool_enabled: bool
    tool_protocol: str
    attempt: int
    sample_indices: _containers.RepeatedScalarFieldContainer[int]
    run_seed: int
    epoch: int
    fed_at: _timestamp_pb2.Timestamp
    def __init__(self, group: _Optional[_Union[GroupPlace, _Mapping]] = ..., problem: _Optional[_Union[Problem, _Mapping]] = ..., group_size: _Optional[int] = ..., groups_in_step: _Optional[int] = ..., budgets: _Optional[_Union[Budgets, _Mapping]] = ..., sampling: _Optional[_Union[SamplingParameters, _Mapping]] = ..., mode: _Optional[_Union[Mode, str]] = ..., tool_enabled: _Optional[bool] = ..., tool_protocol: _Optional[str] = ..., attempt: _Optional[int] = ..., sample_indices: _Optional[_Iterable[int]] = ..., run_seed: _Optional[int] = ..., epoch: _Optional[int] = ..., fed_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...
