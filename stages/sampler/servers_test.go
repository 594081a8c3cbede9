package main

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/schemas/tokens"
	"github.com/sluice-rl/sluice/stages/internal/kafka"
	"github.com/sluice-rl/sluice/stages/internal/testkit/kafkatest"
	"github.com/sluice-rl/sluice/stages/sampler/inference/inferencetest"
	"github.com/sluice-rl/sluice/topology/process"
)

// What only a server can mean is never an answer of the policy's, which would be graded.
func TestAnEndingThatIsNotThePolicysIsNeverAnAnswer(t *testing.T) {
	for _, finish := range []string{"error", "null", "content_filter", "tool_calls", "repetition", "STOP"} {
		t.Run(finish, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`}, inferencetest.Answer{Raw: `\boxed{4`, Finish: finish})}
				fake.Policy = once(fake.Policy, each(inferencetest.Answer{Raw: `\boxed{4`, Finish: finish}))
				s, _ := start(w, fake)
				defer s.Stop()
				w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
				if diff := cmp.Diff(map[string]int{"answer": 2, "protocol_fault": 2}, reasons(w.Await("trajectories", 4))); diff != "" {
					t.Errorf("end reasons (-want +got):\n%s", diff)
				}
				if n := len(fake.Asks()); n != 1+2*4 {
					t.Errorf("%d requests, want one for the group and four more for each of two members", n)
				}
			})
		})
	}
}

// once answers the first request with one policy and the others with another.
func once(first, then func(inferencetest.Ask) []inferencetest.Answer) func(inferencetest.Ask) []inferencetest.Answer {
	var mu sync.Mutex
	began := false
	return func(a inferencetest.Ask) []inferencetest.Answer {
		mu.Lock()
		policy := then
		if !began {
			policy, began = first, true
		}
		mu.Unlock()
		return policy(a)
	}
}

// A server that gives one bad answer gets the turn asked again, and the record says so.
func TestAttemptsTravelWithTheTurn(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: once(each(inferencetest.Answer{Raw: "x", Finish: "error"}), each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`}))}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		for _, tr := range trajectories(w.Await("trajectories", 4)) {
			if n := tr.GetTurns()[0].GetAttempts(); n != 2 || reason(tr) != "answer" || tr.GetDialect() != "vllm" || tr.GetLogprobsMode() != "raw" {
				t.Errorf("%s after %d attempts, asked as %q, %q logprobs; want an answer after 2, as vllm, raw", reason(tr), n, tr.GetDialect(), tr.GetLogprobsMode())
			}
		}
	})
}

func TestEndlessAbortsEnd(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: once(each(inferencetest.Answer{Raw: "It is", Finish: "abort"}), each(inferencetest.Answer{Finish: "abort"}))}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		for _, tr := range trajectories(w.Await("trajectories", 4)) {
			if reason(tr) != "protocol_fault" || !strings.Contains(tr.GetEndDetail(), "aborted 60 times in a row") || tokens.Count(tr.GetTurns()[0].GetTokens()) != 5 {
				t.Errorf("%s: %s, with %d tokens", reason(tr), tr.GetEndDetail(), tokens.Count(tr.GetTurns()[0].GetTokens()))
			}
		}
	})
}

// A later turn that the server will never take ends its trajectory with the turns that
// it has; its siblings, also of the same record, go on.
func TestARefusalOnALaterTurnKeepsTheTurns(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: call}, inferencetest.Answer{Raw: `\boxed{41}<|im_end|>`})}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		calls := w.Await("code-calls", 2)
		fake.Set(func(f *inferencetest.Fake) {
			f.Sampling, f.Message = 400, "This model's maximum context length is 64 tokens"
		})
		execute(w, calls, "42\n")
		got := trajectories(w.Await("trajectories", 4))
		if diff := cmp.Diff(map[string]int{"answer": 2, "refused": 2}, reasons(w.Settle("trajectories"))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		for _, tr := range got {
			if reason(tr) != "refused" {
				continue
			}
			if len(tr.GetTurns()) != 1 || tr.GetCodeCalls() != 1 || !strings.HasPrefix(tr.GetEndDetail(), "turn 1: ") || !strings.Contains(tr.GetEndDetail(), "maximum context length is 64") {
				t.Errorf("%d turns, %d calls, %q", len(tr.GetTurns()), tr.GetCodeCalls(), tr.GetEndDetail())
			}
		}
		if n := len(w.Settle("dead-letters")); n != 0 {
			t.Errorf("%d dead letters, want none", n)
		}
	})
}

// One member of a fork is aborted, and what it goes on with is refused: the others count.
func TestARefusedMemberOfAForkLosesNoSibling(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{}
		fake.Policy = func(a inferencetest.Ask) []inferencetest.Answer {
			fake.Set(func(f *inferencetest.Fake) { f.Sampling, f.Message = 400, "no" })
			return each(inferencetest.Answer{Raw: "It is", Finish: "abort"}, inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`}, inferencetest.Answer{Raw: call}, inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})(a)
		}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		w.Await("code-calls", 1)
		if diff := cmp.Diff(map[string]int{"answer": 2, "refused": 1}, reasons(w.Await("trajectories", 3))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
	})
}

// The same refusal for everybody ends the stage in the server's words within seconds;
// nothing is lost by it, and the next sampler samples everything.
func TestARefusalForEverybodyEndsTheStageAndLosesNothing(t *testing.T) {
	for name, spoil := range map[string]func(*inferencetest.Fake){
		"an option it needs": func(f *inferencetest.Fake) { f.Sampling, f.Message = 400, "token ids need --return-ids" },
		"no token ids": func(f *inferencetest.Fake) {
			f.Policy = each(inferencetest.Answer{Raw: `\boxed{42}`, WithoutTokenIDs: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				good := each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})
				fake := &inferencetest.Fake{Policy: good}
				for slot := range uint32(50) {
					w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, slot)})
				}
				spoil(fake)
				begin := time.Now()
				s, _ := start(w, fake)
				err := s.Ended()
				if !errors.Is(err, process.ErrUnusable) || time.Since(begin) > time.Minute {
					t.Errorf("after %v ended with %v, want ErrUnusable within a minute", time.Since(begin), err)
				}
				if fake.Message != "" && !strings.Contains(err.Error(), fake.Message) {
					t.Errorf("%q does not have the server's words", err)
				}
				if n := len(w.Settle("trajectories")) + len(w.Settle("dead-letters")); n != 0 {
					t.Errorf("%d trajectories or dead letters, want none: nothing was at fault", n)
				}
				fake.Sampling, fake.Message, fake.Policy = 0, "", good
				s, _ = start(w, fake)
				defer s.Stop()
				if diff := cmp.Diff(map[string]int{"answer": 200}, reasons(w.Await("trajectories", 200))); diff != "" {
					t.Errorf("end reasons (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A single problem that is refused among good ones costs that problem alone, in SQL under
// its own reason.
func TestARefusedPromptIsItsOwnReason(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})}
		s, _ := start(w, fake)
		defer s.Stop()
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		w.Await("trajectories", 4)
		fake.Set(func(f *inferencetest.Fake) { f.Sampling, f.Message = 400, "this one is not for me" })
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 1)})
		for _, tr := range trajectories(w.Await("trajectories", 8))[4:] {
			if reason(tr) != "refused" || !strings.Contains(tr.GetEndDetail(), "this one is not for me") {
				t.Errorf("%s: %s; want refused in the server's words", reason(tr), tr.GetEndDetail())
			}
		}
		fake.Set(func(f *inferencetest.Fake) { f.Sampling = 0 })
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 2)})
		if got := reasons(w.Await("trajectories", 12)); got["answer"] != 8 {
			t.Errorf("end reasons %v, want 8 answers: the others go on", got)
		}
	})
}

// A server that changes the prompt: the first differing index is named.
func TestAChangedPromptIsAProtocolFault(t *testing.T) {
	for name, c := range map[string]struct {
		fake *inferencetest.Fake
		want string
	}{
		"a BOS put before it":          {&inferencetest.Fake{BOS: true}, "the first difference is at index 0: it put 1 tokens before it"},
		"its beginning dropped":        {&inferencetest.Fake{TruncateTo: 40}, "it dropped the first"},
		"a BOS, and only counts given": {&inferencetest.Fake{BOS: true, WithoutPrompt: true}, "tokens where"},
	} {
		t.Run(name, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				c.fake.Policy = each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})
				s, _ := start(w, c.fake)
				defer s.Stop()
				w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
				for _, tr := range trajectories(w.Await("trajectories", 4)) {
					if reason(tr) != "protocol_fault" || !strings.Contains(tr.GetEndDetail(), c.want) {
						t.Errorf("%s: %q, want %q", reason(tr), tr.GetEndDetail(), c.want)
					}
				}
			})
		})
	}
}

// What finished runs left in policy-updates decides nothing for a new one.
func TestUpdatesOfOldRunsDecideNothingForANewOne(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		w.Put(
			kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "old", Step: 9, PolicyVersion: 9, InferenceUrl: "http://dead:1", Model: "gone"}},
			kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "older", Step: 3, PolicyVersion: 3, Model: "not-served"}},
			kafka.Output{Topic: "prompts", Body: prompt(1, 0)},
		)
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})}
		s, env := start(w, fake)
		defer s.Stop()
		for _, tr := range trajectories(w.Await("trajectories", 4)) {
			if v := tr.GetTurns()[0].GetVersions(); reason(tr) != "answer" || v[0].GetVersion() != 0 {
				t.Errorf("%s of version %d, want an answer of version 0", reason(tr), v[0].GetVersion())
			}
		}
		if got := fake.Asks()[0].Model; got != "fake" {
			t.Errorf("asked model %q, want the one that the server has", got)
		}
		if !ready(env) {
			t.Error("not ready, though nobody waits for the old runs' server")
		}
	})
}

// A record of a step that the trainer has answered is not worked on, and one in hand is
// left.
func TestRecordsOfStepsThatAreDoneAreLeft(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`}), Latency: time.Hour}
		s, env := start(w, fake)
		awaitReady(w, env)
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
		time.Sleep(10 * time.Second)
		if n := len(fake.Asks()); n != 1 {
			t.Fatalf("%d requests, want 1", n)
		}
		w.Put(kafka.Output{Topic: "policy-updates", Body: &sluicev1.PolicyUpdate{RunId: "run", Step: 1, PolicyVersion: 1}})
		time.Sleep(10 * time.Second)
		w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 1)})
		time.Sleep(10 * time.Second)
		if n := len(fake.Asks()); n != 1 {
			t.Errorf("%d requests, want 1: the second prompt's step was done", n)
		}
		begin := time.Now()
		s.Stop()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("a stop took %v: the request of the step that is done is still waited for", took)
		}
		if n := len(w.Settle("trajectories")) + len(w.Settle("dead-letters")); n != 0 {
			t.Errorf("%d records written, want none", n)
		}
	})
}

// A stop does not wait for a server that is away: the records are the next one's.
func TestAStopDuringAnOutageIsQuick(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		fake := &inferencetest.Fake{Policy: each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})}
		s, env := start(w, fake)
		awaitReady(w, env)
		fake.Set(func(f *inferencetest.Fake) { f.Away = true })
		for slot := range uint32(20) {
			w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, slot)})
		}
		time.Sleep(2 * time.Minute)
		if ready(env) {
			t.Error("ready though the inference server has been away for two minutes")
		}
		begin := time.Now()
		s.Stop()
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("a stop took %v, want seconds", took)
		}
		fake.Set(func(f *inferencetest.Fake) { f.Away = false })
		s, _ = start(w, fake)
		defer s.Stop()
		if diff := cmp.Diff(map[string]int{"answer": 80}, reasons(w.Await("trajectories", 80))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
	})
}

// Two servers serve a run between them; one goes away and nothing is lost.
func TestSeveralServersShareARun(t *testing.T) {
	kafkatest.Run(t, func(w *kafkatest.World) {
		policy := each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})
		one, two := &inferencetest.Fake{Policy: policy}, &inferencetest.Fake{Policy: policy}
		s, env := prepare(w, one)
		s.http = &http.Client{Transport: hosts{"one:8000": one, "two:8000": two}}
		s.cfg.urls = []string{"http://one:8000", "http://two:8000"}
		running := w.Start(s.run, env)
		defer running.Stop()
		for slot := range uint32(40) {
			w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, slot)})
		}
		w.Await("trajectories", 160)
		n, m := len(one.Asks()), len(two.Asks())
		if n+m != 40 || n < 8 || m < 8 {
			t.Errorf("%d and %d requests, want 40 shared about evenly", n, m)
		}
		one.Set(func(f *inferencetest.Fake) { f.Away = true })
		for slot := range uint32(40) {
			w.Put(kafka.Output{Topic: "prompts", Body: prompt(2, slot)})
		}
		if diff := cmp.Diff(map[string]int{"answer": 320}, reasons(w.Await("trajectories", 320))); diff != "" {
			t.Errorf("end reasons (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Second)
		if ready(env) {
			t.Error("ready though one of two servers is away")
		}
	})
}

type hosts map[string]*inferencetest.Fake

func (h hosts) RoundTrip(req *http.Request) (*http.Response, error) {
	return h[req.URL.Host].RoundTrip(req)
}

// The whole loop in every dialect that renders conversations.
func TestEveryDialectDrivesTrajectories(t *testing.T) {
	for _, dialect := range []string{"", "vllm-generate", "sglang", "llamacpp", "openai"} {
		t.Run("as "+dialect, func(t *testing.T) {
			kafkatest.Run(t, func(w *kafkatest.World) {
				fake := &inferencetest.Fake{Dialect: dialect, Policy: func(a inferencetest.Ask) []inferencetest.Answer {
					if strings.Contains(a.Prompt, "tool\n42") {
						return each(inferencetest.Answer{Raw: `\boxed{42}<|im_end|>`})(a)
					}
					return each(inferencetest.Answer{Raw: call})(a)
				}}
				s, _ := start(w, fake)
				defer s.Stop()
				w.Put(kafka.Output{Topic: "prompts", Body: prompt(1, 0)})
				execute(w, w.Await("code-calls", 4), "42\n")
				for _, tr := range trajectories(w.Await("trajectories", 4)) {
					if reason(tr) != "answer" || len(tr.GetTurns()) != 2 || tr.GetFinalText() != `\boxed{42}` {
						t.Errorf("%s after %d turns: %q %s", reason(tr), len(tr.GetTurns()), tr.GetFinalText(), tr.GetEndDetail())
					}
				}
			})
		})
	}
}
