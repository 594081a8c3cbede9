package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/schemas/archive/topic"
	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology/process"
)

// buildBeside builds a stage to where sluice looks for it: beside the test.
func buildBeside(t *testing.T, name string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(self), name)
	build := exec.Command("go", "build", "-o", out, "github.com/sluice-rl/sluice/stages/"+name)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, said)
	}
	t.Cleanup(func() { os.Remove(out) })
}

// TestMain lets the test binary be sluice, for commands in whose place another program
// comes.
func TestMain(m *testing.M) {
	if os.Getenv("SLUICE_IS_UNDER_TEST") != "" {
		os.Exit(process.Main(Program()))
	}
	os.Exit(m.Run())
}

// started runs sluice as a process of its own.
func started(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "SLUICE_IS_UNDER_TEST=1")
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// produce writes messages as the stages do.
func produce(t *testing.T, address, namespace string, messages map[string][]proto.Message) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for topic, ms := range messages {
		for _, m := range ms {
			rec, err := codec.Encode(m)
			if err != nil {
				t.Fatal(err)
			}
			r := &kgo.Record{Topic: namespace + topic, Key: rec.Key, Value: rec.Value}
			for _, h := range rec.Headers {
				r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
			}
			if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// recordedGroup is one group of two, one right and one wrong, in the run's step of that
// number.
func recordedGroup(step uint64) map[string][]proto.Message {
	at := timestamppb.New(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	closed := &sluicev1.GroupClosed{
		Group: &sluicev1.GroupPlace{RunId: "run", Step: step}, QuestionId: fmt.Sprint("q", step), Mode: sluicev1.Mode_MODE_TRAIN, GroupSize: 2, GroupsInStep: 1,
		Closing: sluicev1.Closing_CLOSING_USED, Reason: "complete", Graded: 2, OpenedAt: at, ClosedAt: at,
	}
	out := map[string][]proto.Message{}
	for i, reward := range []float64{1, -1} {
		t := &sluicev1.Trajectory{
			Prompt: &sluicev1.Prompt{
				Group: closed.GetGroup(), Problem: &sluicev1.Problem{QuestionId: closed.GetQuestionId(), Answer: "7"},
				GroupSize: 2, GroupsInStep: 1, Mode: closed.GetMode(),
			},
			SampleIndex: uint32(i), Copy: 10*step + uint64(i), EndReason: sluicev1.EndReason_END_REASON_ANSWER,
			FinalText: fmt.Sprintf(`\boxed{%d}`, 7+i),
		}
		out["scored"] = append(out["scored"], &sluicev1.Scored{
			Trajectory: t, Graded: true, Reward: reward, Correct: reward > 0, ValidFormat: true,
			Scores: []*sluicev1.Score{{Name: "outcome", Version: "1", Reward: reward}}, ScoredAt: at,
		})
		closed.Members = append(closed.Members, &sluicev1.MemberClosing{
			SampleIndex: uint32(i), Copy: t.GetCopy(), Fate: sluicev1.MemberFate_MEMBER_FATE_USED, Reward: reward, Advantage: reward,
		})
	}
	out["grouped"] = []proto.Message{closed}
	return out
}

// counted counts the records of a topic, without markers of transactions.
func counted(t *testing.T, address, name string) (n int64) {
	t.Helper()
	cl, err := kgo.NewClient(append(topic.Options(), kgo.SeedBrokers(address))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	b, err := topic.Range(t.Context(), cl, name, archive.Selection{})
	if err == nil {
		err = topic.Read(t.Context(), cl, "", name, b, nil, func(archive.Record) error { n++; return nil })
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestExportAndReplayOnABroker(t *testing.T) {
	buildBeside(t, "replayer")
	address := startBroker(t)
	with := func(args ...string) []string { return append(args, "--brokers", address, "--namespace", "t.") }
	if status, _, stderr := sluice(with("apply")...); status != process.ExitOK {
		t.Fatalf("apply: %d, %s", status, stderr)
	}
	for step := range uint64(3) {
		produce(t, address, "t.", recordedGroup(step+1))
	}
	dir := t.TempDir()
	for _, format := range []string{"parquet", "jsonl"} {
		to := filepath.Join(dir, format)
		status, stdout, stderr := sluice(with("export", "--to", to, "--format", format, "--steps", "2-3")...)
		if status != process.ExitOK || !strings.Contains(stdout, "4 of scored, 2 of grouped, 0 of ppo-batches") {
			t.Fatalf("export: %d, %q, %s", status, stdout, stderr)
		}
		a, err := archive.Open(to)
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		err = a.Read("scored", func(r archive.Record) error {
			m, err := r.Decode()
			texts = append(texts, m.(*sluicev1.Scored).GetTrajectory().GetFinalText())
			return err
		})
		if err != nil || len(texts) != 4 {
			t.Errorf("%s holds %q, %v", format, texts, err)
		}
	}
	if status, _, stderr := sluice(with("export", "--to", filepath.Join(dir, "parquet"))...); status != process.ExitFailed || !strings.Contains(stderr, "not empty") {
		t.Errorf("export into a folder that is used: %d, %s", status, stderr)
	}

	reward := filepath.Join(dir, "reward.yaml")
	if err := os.WriteFile(reward, []byte("rewards: [{name: zero_one, kind: zero_one}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var sum struct {
		Scored  int `json:"scored"`
		Changed int `json:"reward_changed"`
		Used    int `json:"groups_used"`
	}
	status, stdout, stderr := started(t, with("replay", "--id", "z", "--reward", reward, "--state", filepath.Join(dir, "state"))...)
	if err := json.Unmarshal([]byte(stdout), &sum); status != process.ExitOK || err != nil || sum.Scored != 6 || sum.Changed != 3 || sum.Used != 3 {
		t.Fatalf("replay: %d, %q, %s", status, stdout, stderr)
	}
	for name, want := range map[string]int64{"t.scored": 6, "t.grouped": 3, "t.replay-z.scored": 6, "t.replay-z.grouped": 3, "t.replay-z.ppo-batches": 0} {
		if got := counted(t, address, name); got != want {
			t.Errorf("%s has %d records, want %d", name, got, want)
		}
	}
	status, stdout, stderr = started(t, "replay", "--id", "y", "--archive", filepath.Join(dir, "jsonl"), "--to", filepath.Join(dir, "out"), "--reward", reward)
	if err := json.Unmarshal([]byte(stdout), &sum); status != process.ExitOK || err != nil || sum.Scored != 4 || sum.Used != 2 {
		t.Errorf("replay of the archive: %d, %q, %s", status, stdout, stderr)
	}
	if status, _, stderr := started(t, "replay", "--id", "a.b"); status != process.ExitUsage || !strings.Contains(stderr, "--id") {
		t.Errorf("a bad id: %d, %s; want %d", status, stderr, process.ExitUsage)
	}
	// Arguments that cannot work are named before any broker is asked.
	nowhere := filepath.Join(dir, "nowhere")
	for _, wrong := range [][]string{{"--archive", nowhere}, {"--format", "parquet"}} {
		args := append([]string{"replay", "--id", "x", "--brokers", "127.0.0.1:1"}, wrong...)
		if status, _, stderr := started(t, args...); status == process.ExitOK || !strings.Contains(stderr, wrong[0]) && !strings.Contains(stderr, wrong[1]) || strings.Contains(stderr, "127.0.0.1:1") {
			t.Errorf("%v: %d, %s", args, status, stderr)
		}
	}
	if status, stdout, _ := started(t, "replay", "--help"); status != process.ExitOK || !strings.Contains(stdout, "--until") {
		t.Errorf("replay --help: %d, %q", status, stdout)
	}
}

func TestExportFlagsThatCannotWork(t *testing.T) {
	for args, word := range map[string]string{
		"export":                                         "--to is missing",
		"export --to x --format csv":                     "--format",
		"export --to x --topics nonsense":                "nonsense",
		"export --to x --topics reward-scorer-changelog": "no topic of records",
		"export --to x --steps 0":                        "steps",
		"export x":                                       `argument "x"`,
	} {
		if status, _, stderr := sluice(strings.Fields(args)...); status != process.ExitUsage || !strings.Contains(stderr, word) {
			t.Errorf("%q: %d, %s; want %d with %q", args, status, stderr, process.ExitUsage, word)
		}
	}
}
