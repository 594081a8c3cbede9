package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sluice-rl/sluice/integration/apachekafka"
)

// securedStages are the stages but the feeder, each with the mechanism by which it says who
// it is in this test.
var securedStages = []struct{ name, mechanism string }{
	{"metrics-writer", "certificate"},
	{"ppo-batcher", "scram-sha-512"},
	{"advantage-grouper", "scram-sha-256"},
	{"reward-scorer", "plain"},
	{"code-executor", "oauthbearer"},
	{"sampler", "scram-sha-512"},
}

const securedNamespace = "secured."

// TestLeastRights runs the loop on a Kafka that lets nobody in unnamed, each stage as a
// user of its own who may do what `sluice apply --acls` gave it and nothing else. Then each
// stage is started once with each of the rights taken away that it needs to begin, and must
// say which.
func TestLeastRights(t *testing.T) {
	users := []string{"trainer", "prompt-feeder", "nobody"}
	for _, s := range securedStages {
		users = append(users, s.name)
	}
	kafka := apachekafka.StartSecured(t, users...)
	admin := append(kafka.Flags(apachekafka.Admin, "scram-sha-512"), "--namespace", securedNamespace)
	as := func(user, mechanism string) []string {
		return append(kafka.Flags(user, mechanism), "--namespace", securedNamespace)
	}
	if out, err := sluice(t, append([]string{"apply", "--acls", "User:{stage}"}, as("nobody", "plain")...)...); err == nil || !strings.Contains(strings.ToLower(out), "authoriz") {
		t.Fatalf("apply as a user without rights: %v\n%s", err, out)
	}
	rights, err := sluice(t, append([]string{"apply", "--acls", "User:{stage}"}, admin...)...)
	if err != nil {
		t.Fatalf("apply: %v\n%s", err, rights)
	}
	if out, err := sluice(t, append([]string{"apply", "--acls", "User:{stage}"}, admin...)...); err != nil || !strings.Contains(out, "agrees") {
		t.Fatalf("apply again: %v\n%s", err, out)
	}

	args := securedArguments(t)
	_, policy := startReady(t, "simpolicy", append(as("trainer", "scram-sha-256"), "--run-id", "r", "--inference-url", "-", "--state-dir", t.TempDir(), "--http-addr", "127.0.0.1:0")...)
	args["sampler"] = []string{"--inference-url", "http://" + policy["http"].(string)}
	var running []*process
	for _, s := range securedStages {
		p, _ := startReady(t, s.name, append(as(s.name, s.mechanism), args[s.name]...)...)
		running = append(running, p)
	}
	feeder := start(t, "prompt-feeder", append(as("prompt-feeder", "scram-sha-512"), args["prompt-feeder"]...)...)
	if code := feeder.status(patience); code != 0 {
		t.Fatalf("prompt-feeder: exit status %d\n%s", code, feeder.out)
	}
	for _, p := range append(running, feeder) {
		if said := p.out.String(); strings.Contains(strings.ToLower(said), "authoriz") {
			t.Errorf("%s lacks a right:\n%s", filepath.Base(p.cmd.Path), said)
		}
	}
	for _, p := range running {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range running {
		p.status(patience)
	}
	mechanisms := map[string]string{"prompt-feeder": "scram-sha-512"}
	for _, s := range securedStages {
		mechanisms[s.name] = s.mechanism
	}
	t.Run("a wrong password is said", func(t *testing.T) {
		wrong := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(wrong, []byte("wrong"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, "reward-scorer", append(as("reward-scorer", "plain"), "--kafka-password-file", wrong)...)
		p.until("it says that it was not let in", func() bool { return strings.Contains(p.out.String(), "SASL_AUTHENTICATION_FAILED") })
	})
	adm := kadm.NewClient((&services{brokers: []string{kafka.Address}}).client(t))
	for _, r := range parseRights(t, rights) {
		stage := strings.TrimPrefix(r.principal, "User:")
		if mechanisms[stage] == "" {
			continue // the trainer, whose program is not ours
		}
		t.Run(strings.ReplaceAll(r.line, "/", "_"), func(t *testing.T) {
			r.change(t, adm.DeleteACLs)
			var again []string
			if stage == "prompt-feeder" {
				again = []string{"--run-id", "r-without-" + r.kind + "-" + r.operation + "-" + r.short()}
			}
			defer r.change(t, func(ctx context.Context, b *kadm.ACLBuilder) (kadm.DeleteACLsResults, error) {
				_, err := adm.CreateACLs(ctx, b)
				return nil, err
			})
			p := start(t, stage, slices.Concat(as(stage, mechanisms[stage]), args[stage], again)...)
			p.until("it says that it may not", func() bool { return r.named(p.out.String()) })
		})
	}
}

// right is a line of `sluice apply --acls`.
type right struct{ line, principal, operation, kind, name string }

var rightLine = regexp.MustCompile(`create right \((\S+) may (\S+) (\S+) (\S+)\)`)

func parseRights(t *testing.T, text string) []right {
	t.Helper()
	var all []right
	for _, m := range rightLine.FindAllStringSubmatch(text, -1) {
		all = append(all, right{strings.Join(m[1:], " "), m[1], m[2], m[3], m[4]})
	}
	if len(all) < 50 {
		t.Fatalf("only %d rights in\n%s", len(all), text)
	}
	return all
}

// short is the name without namespace and without the star of a prefix.
func (r right) short() string {
	return strings.TrimPrefix(strings.TrimSuffix(r.name, "*"), securedNamespace)
}

// named tells whether a process said that it lacks the right.
func (r right) named(said string) bool {
	for line := range strings.Lines(strings.ToLower(said)) {
		if strings.Contains(line, r.short()) && (strings.Contains(line, "does not permit") || strings.Contains(line, "authoriz")) {
			return true
		}
	}
	return false
}

func (r right) change(t *testing.T, do func(context.Context, *kadm.ACLBuilder) (kadm.DeleteACLsResults, error)) {
	t.Helper()
	name, prefix := strings.CutSuffix(r.name, "*")
	b := kadm.NewACLs().Allow(r.principal).AllowHosts("*").ResourcePatternType(kadm.ACLPatternLiteral)
	if prefix {
		b.ResourcePatternType(kadm.ACLPatternPrefixed)
	}
	switch r.kind {
	case "topic":
		b.Topics(name)
	case "group":
		b.Groups(name)
	case "transactional-id":
		b.TransactionalIDs(name)
	default:
		t.Fatalf("%s: no such kind", r.line)
	}
	operation, err := kmsg.ParseACLOperation(r.operation)
	if err != nil {
		t.Fatal(err)
	}
	results, err := do(within(t), b.Operations(operation))
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range results {
		if result.Err != nil || len(result.Deleted) != 1 {
			t.Fatalf("%s: %d deleted, %v", r.line, len(result.Deleted), result.Err)
		}
	}
}

// securedArguments are the arguments of each stage, and start what they need.
func securedArguments(t *testing.T) map[string][]string {
	t.Helper()
	dir := reachable(t)
	problems := filepath.Join(dir, "problems")
	sample := filepath.Join(checkout(t), "topology", "embedded", "simpolicy", "gsm8k", "sample.jsonl")
	if out, err := sluice(t, "prepare", "--input", sample, "--out", problems, "--dev", "0"); err != nil {
		t.Fatalf("prepare: %v\n%s", err, out)
	}
	click := &services{}
	click.ownClickHouse(t, filepath.Join(dir, "clickhouse"))
	socket := filepath.Join(dir, "sandboxd.sock")
	startReady(t, "sandboxd", "--socket", socket, "--state-dir", filepath.Join(dir, "sandboxd"), "--cache-dir", filepath.Join(dir, "cache"),
		"--slots", "3", "--runsc", filepath.Join(checkout(t), ".tools", "bin", "runsc"))
	return map[string][]string{
		"metrics-writer": click.flags,
		"code-executor":  {"--sandboxd", socket, "--slots", "2", "--lock", "15s"},
		"prompt-feeder":  {"--data", filepath.Join(problems, "train.jsonl"), "--run-id", "r", "--steps", "3", "--problems-per-step", "2", "--group-size", "4"},
	}
}

func sluice(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.Command(binary(t, "sluice"), args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("sluice %s: %w", args[0], err)
	}
	return string(out), err
}
