package rows

import "time"

// Row is a row of one table, a pointer to a struct. Its fields are the table's columns, in order, by their
// `ch` tags; schemas/clickhouse/tables says what they mean.
type Row interface {
	// Table is the table's name.
	Table() string
}

// Source is where a row's record lies in Kafka.
type Source struct {
	Topic     string `ch:"source_topic"`
	Partition int32  `ch:"source_partition"`
	Offset    int64  `ch:"source_offset"`
	// EventTime decides the table partition.
	EventTime time.Time `ch:"event_time"`
}

// Step names a step of a run.
type Step struct {
	RunID       string `ch:"run_id"`
	Incarnation uint32 `ch:"incarnation"`
	Step        uint64 `ch:"step"`
}

// Member names a trajectory.
type Member struct {
	Step
	Slot        uint32 `ch:"slot"`
	SampleIndex uint32 `ch:"sample_index"`
	Copy        uint64 `ch:"copy"`
}

// Trajectory is a row of trajectories.
type Trajectory struct {
	Source
	Member
	Attempt           uint32     `ch:"attempt"`
	QuestionID        string     `ch:"question_id"`
	DataSource        string     `ch:"data_source"`
	Mode              string     `ch:"mode"`
	Question          string     `ch:"question"`
	ReferenceAnswer   string     `ch:"reference_answer"`
	GroupSize         uint32     `ch:"group_size"`
	GroupsInStep      uint32     `ch:"groups_in_step"`
	ToolEnabled       bool       `ch:"tool_enabled"`
	Epoch             uint32     `ch:"epoch"`
	Temperature       float64    `ch:"temperature"`
	TopP              float64    `ch:"top_p"`
	EndReason         string     `ch:"end_reason"`
	EndDetail         string     `ch:"end_detail"`
	EndedBy           string     `ch:"ended_by"`
	FinalText         string     `ch:"final_text"`
	Turns             uint32     `ch:"turns"`
	CodeCalls         uint32     `ch:"code_calls"`
	Executions        uint32     `ch:"executions"`
	ToolCallTurns     uint32     `ch:"tool_call_turns"`
	ToolTurns         uint32     `ch:"tool_turns"`
	TruncatedTurns    uint32     `ch:"truncated_turns"`
	Aborts            uint32     `ch:"aborts"`
	FailedAttempts    uint32     `ch:"failed_attempts"`
	PromptTokens      []uint32   `ch:"prompt_tokens"`
	PolicyTokens      uint32     `ch:"policy_tokens"`
	GlueTokens        uint32     `ch:"glue_tokens"`
	TrajectoryTokens  uint32     `ch:"trajectory_tokens"`
	PolicyVersionMin  uint32     `ch:"policy_version_min"`
	PolicyVersionMax  uint32     `ch:"policy_version_max"`
	LogprobsMode      string     `ch:"logprobs_mode"`
	Dialect           string     `ch:"dialect"`
	FirstOutcome      string     `ch:"first_outcome"`
	ExecutionOutcomes []string   `ch:"execution_outcomes"`
	ExecutionWallMS   []float32  `ch:"execution_wall_ms"`
	Graded            bool       `ch:"graded"`
	UngradedReason    string     `ch:"ungraded_reason"`
	Reward            float64    `ch:"reward"`
	Correct           bool       `ch:"correct"`
	ValidFormat       bool       `ch:"valid_format"`
	Answer            string     `ch:"answer"`
	Verdict           string     `ch:"verdict"`
	VerdictMethod     string     `ch:"verdict_method"`
	VerdictReason     string     `ch:"verdict_reason"`
	GoldRead          string     `ch:"gold_read"`
	PredRead          string     `ch:"pred_read"`
	Scorer            string     `ch:"scorer"`
	ScorerVersion     string     `ch:"scorer_version"`
	ScoreNames        []string   `ch:"score_names"`
	ScoreVersions     []string   `ch:"score_versions"`
	ScoreRewards      []float64  `ch:"score_rewards"`
	ScoreErrors       []string   `ch:"score_errors"`
	FedAt             *time.Time `ch:"fed_at"`
	StartedAt         *time.Time `ch:"started_at"`
	EndedAt           *time.Time `ch:"ended_at"`
	ScoredAt          *time.Time `ch:"scored_at"`
}

// Table is trajectories.
func (*Trajectory) Table() string { return "trajectories" }

// Turn is a row of turns.
type Turn struct {
	Source
	Member
	Turn               uint32     `ch:"turn"`
	Kind               string     `ch:"kind"`
	InvalidReason      string     `ch:"invalid_reason"`
	Truncated          bool       `ch:"truncated"`
	HasToolCall        bool       `ch:"has_tool_call"`
	Aborts             uint32     `ch:"aborts"`
	Attempts           uint32     `ch:"attempts"`
	PolicyVersionMin   uint32     `ch:"policy_version_min"`
	PolicyVersionMax   uint32     `ch:"policy_version_max"`
	VersionSource      string     `ch:"version_source"`
	Mode               string     `ch:"mode"`
	Graded             bool       `ch:"graded"`
	Correct            bool       `ch:"correct"`
	Text               string     `ch:"text"`
	Code               string     `ch:"code"`
	Observation        string     `ch:"observation"`
	Tokens             []uint32   `ch:"tokens"`
	Logprobs           []float32  `ch:"logprobs"`
	GlueTokens         []uint32   `ch:"glue_tokens"`
	SampleStartedAt    *time.Time `ch:"sample_started_at"`
	SampleEndedAt      *time.Time `ch:"sample_ended_at"`
	Execution          uint32     `ch:"execution"`
	CallID             string     `ch:"call_id"`
	Outcome            string     `ch:"outcome"`
	ExitCode           int32      `ch:"exit_code"`
	Exception          string     `ch:"exception"`
	Stdout             string     `ch:"stdout"`
	Stderr             string     `ch:"stderr"`
	StdoutTruncated    bool       `ch:"stdout_truncated"`
	StderrTruncated    bool       `ch:"stderr_truncated"`
	StdoutBytes        uint64     `ch:"stdout_bytes"`
	StderrBytes        uint64     `ch:"stderr_bytes"`
	TimeoutMS          uint32     `ch:"timeout_ms"`
	WallMS             float64    `ch:"wall_ms"`
	CPUMS              float64    `ch:"cpu_ms"`
	QueueWaitMS        float64    `ch:"queue_wait_ms"`
	PeakMemoryBytes    uint64     `ch:"peak_memory_bytes"`
	Warm               bool       `ch:"warm"`
	Image              string     `ch:"image"`
	SandboxID          string     `ch:"sandbox_id"`
	Protections        []string   `ch:"protections"`
	QueuedAt           *time.Time `ch:"queued_at"`
	ExecutionStartedAt *time.Time `ch:"execution_started_at"`
	ExecutionEndedAt   *time.Time `ch:"execution_ended_at"`
	Delivery           uint32     `ch:"delivery"`
	UnknownRuns        uint32     `ch:"unknown_runs"`
}

// Table is turns.
func (*Turn) Table() string { return "turns" }

// GroupMember is a row of group_members.
type GroupMember struct {
	Source
	Member
	Attempt    uint32     `ch:"attempt"`
	QuestionID string     `ch:"question_id"`
	Mode       string     `ch:"mode"`
	Graded     bool       `ch:"graded"`
	Reward     float64    `ch:"reward"`
	TakenAt    *time.Time `ch:"taken_at"`
}

// Table is group_members.
func (*GroupMember) Table() string { return "group_members" }

// Group is a row of groups.
type Group struct {
	Source
	Step
	Slot         uint32     `ch:"slot"`
	Attempt      uint32     `ch:"attempt"`
	QuestionID   string     `ch:"question_id"`
	DataSource   string     `ch:"data_source"`
	Mode         string     `ch:"mode"`
	GroupSize    uint32     `ch:"group_size"`
	GroupsInStep uint32     `ch:"groups_in_step"`
	Closing      string     `ch:"closing"`
	Reason       string     `ch:"reason"`
	Graded       uint32     `ch:"graded"`
	Missing      uint32     `ch:"missing"`
	RewardMean   float64    `ch:"reward_mean"`
	OpenedAt     *time.Time `ch:"opened_at"`
	ClosedAt     *time.Time `ch:"closed_at"`
	Detail       string     `ch:"detail"`
}

// Table is groups.
func (*Group) Table() string { return "groups" }

// GroupFate is a row of group_fates.
type GroupFate struct {
	Source
	Member
	Mode      string  `ch:"mode"`
	Fate      string  `ch:"fate"`
	Reward    float64 `ch:"reward"`
	Advantage float64 `ch:"advantage"`
	Attempt   uint32  `ch:"attempt"`
	Refilled  bool    `ch:"refilled"`
	EndReason string  `ch:"end_reason"`
}

// Table is group_fates.
func (*GroupFate) Table() string { return "group_fates" }

// StepBatch is a row of step_batches.
type StepBatch struct {
	Source
	Step
	MicroBatches     uint32     `ch:"micro_batches"`
	N                uint32     `ch:"n"`
	ClipLow          float64    `ch:"clip_low"`
	ClipHigh         float64    `ch:"clip_high"`
	TokenReduction   string     `ch:"token_reduction"`
	PolicyVersionMin uint32     `ch:"policy_version_min"`
	PolicyVersionMax uint32     `ch:"policy_version_max"`
	GroupsUsed       uint32     `ch:"groups_used"`
	GroupsDegenerate uint32     `ch:"groups_degenerate"`
	GroupsDropped    uint32     `ch:"groups_dropped"`
	Data             uint32     `ch:"data"`
	LossTokens       uint64     `ch:"loss_tokens"`
	PaddedTokens     uint64     `ch:"padded_tokens"`
	BatchedAt        *time.Time `ch:"batched_at"`
	ProtocolFaults   uint32     `ch:"protocol_faults"`
	InfraErrors      uint32     `ch:"infra_errors"`
	Digest           string     `ch:"digest"`
	Correction       string     `ch:"correction"`
}

// Table is step_batches.
func (*StepBatch) Table() string { return "step_batches" }

// BatchMember is a row of batch_members.
type BatchMember struct {
	Source
	Member
	Fate       string `ch:"fate"`
	Detail     string `ch:"detail"`
	MicroBatch uint32 `ch:"micro_batch"`
	LossTokens uint32 `ch:"loss_tokens"`
	Staleness  uint32 `ch:"staleness"`
}

// Table is batch_members.
func (*BatchMember) Table() string { return "batch_members" }

// MicroBatch is a row of micro_batches.
type MicroBatch struct {
	Source
	Step
	MicroBatch    uint32   `ch:"micro_batch"`
	Data          uint32   `ch:"data"`
	Tokens        uint64   `ch:"tokens"`
	LossTokens    uint64   `ch:"loss_tokens"`
	PaddedTokens  uint64   `ch:"padded_tokens"`
	Longest       uint32   `ch:"longest"`
	Scale         float64  `ch:"scale"`
	Slots         []uint32 `ch:"slots"`
	SampleIndices []uint32 `ch:"sample_indices"`
	Lengths       []uint32 `ch:"lengths"`
}

// Table is micro_batches.
func (*MicroBatch) Table() string { return "micro_batches" }

// TrainerReport is a row of trainer_reports.
type TrainerReport struct {
	Source
	Step
	PolicyVersion    uint32             `ch:"policy_version"`
	Skipped          bool               `ch:"skipped"`
	Loss             float64            `ch:"loss"`
	RatioMean        float64            `ch:"ratio_mean"`
	RatioMax         float64            `ch:"ratio_max"`
	ClipFractionLow  float64            `ch:"clip_fraction_low"`
	ClipFractionHigh float64            `ch:"clip_fraction_high"`
	Entropy          float64            `ch:"entropy"`
	GradientNorm     float64            `ch:"gradient_norm"`
	Data             uint32             `ch:"data"`
	LossTokens       uint64             `ch:"loss_tokens"`
	DurationMS       float64            `ch:"duration_ms"`
	Extra            map[string]float64 `ch:"extra"`
	ReportedAt       *time.Time         `ch:"reported_at"`
}

// Table is trainer_reports.
func (*TrainerReport) Table() string { return "trainer_reports" }

// TrainerAnnotation is a row of trainer_annotations.
type TrainerAnnotation struct {
	Source
	Member
	PolicyVersion     uint32     `ch:"policy_version"`
	Logprobs          []float32  `ch:"logprobs"`
	BehaviourLogprobs []float32  `ch:"behaviour_logprobs"`
	Entropy           []float32  `ch:"entropy"`
	AnnotatedAt       *time.Time `ch:"annotated_at"`
}

// Table is trainer_annotations.
func (*TrainerAnnotation) Table() string { return "trainer_annotations" }

// PolicyUpdate is a row of policy_updates.
type PolicyUpdate struct {
	Source
	Step
	PolicyVersion uint32     `ch:"policy_version"`
	Trained       bool       `ch:"trained"`
	InferenceURL  string     `ch:"inference_url"`
	Model         string     `ch:"model"`
	ServerVersion string     `ch:"server_version"`
	PublishedAt   *time.Time `ch:"published_at"`
}

// Table is policy_updates.
func (*PolicyUpdate) Table() string { return "policy_updates" }

// DeadLetter is a row of dead_letters.
type DeadLetter struct {
	Source
	Stage           string     `ch:"stage"`
	FailedTopic     string     `ch:"failed_topic"`
	FailedPartition int32      `ch:"failed_partition"`
	FailedOffset    int64      `ch:"failed_offset"`
	ErrorType       string     `ch:"error_type"`
	Error           string     `ch:"error"`
	DeliveryCount   uint32     `ch:"delivery_count"`
	Key             string     `ch:"key"`
	Value           string     `ch:"value"`
	HeaderKeys      []string   `ch:"header_keys"`
	HeaderValues    []string   `ch:"header_values"`
	RunID           string     `ch:"run_id"`
	Incarnation     uint32     `ch:"incarnation"`
	Step            uint64     `ch:"step"`
	Slot            uint32     `ch:"slot"`
	SampleIndex     *uint32    `ch:"sample_index"`
	Copy            uint64     `ch:"copy"`
	QuestionID      string     `ch:"question_id"`
	FailedAt        *time.Time `ch:"failed_at"`
}

// Table is dead_letters.
func (*DeadLetter) Table() string { return "dead_letters" }
