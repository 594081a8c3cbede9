package policy

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// situations are prompts that between them reach every site.
func (w world) situations(t testing.TB) [][]uint32 {
	return [][]uint32{
		w.prompt(t, true, weng),
		w.prompt(t, false, weng),
		w.prompt(t, true, "How many are 2 and 3?"),
		w.prompt(t, true, weng, goodCall, "10.0"),
		w.prompt(t, true, weng, "x", nameErr),
		w.prompt(t, true, weng, "x", nameErr, "y", nameErr),
		w.prompt(t, true, weng, "x", ""),
		w.prompt(t, true, "What is 17 times 4?"),
		w.tok.Encode("no conversation at all 12 34"),
	}
}

func drawParameters(t *rapid.T) Parameters {
	p := Initial()
	for s := range p {
		for i := range p[s] {
			p[s][i] += rapid.Float64Range(-2, 2).Draw(t, "shift")
		}
	}
	return p
}

// The trainer reads back bit for bit what the sampler said.
func TestScoreOfASampleIsItsLogprob(t *testing.T) {
	w := newWorld(t)
	prompts := w.situations(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawParameters(t)
		prompt := rapid.SampledFrom(prompts).Draw(t, "prompt")
		temperature := rapid.SampledFrom([]float64{1, 0.7, 1.5}).Draw(t, "temperature")
		g, err := w.pol.Sample(p, Request{
			Prompt: prompt, Seed: rapid.Uint64().Draw(t, "seed"), MaxTokens: rapid.IntRange(1, 120).Draw(t, "max tokens"),
			Sampling: Sampling{Temperature: temperature, TopP: 1},
		})
		if err != nil {
			t.Fatal(err)
		}
		scored, err := w.pol.Score(p, temperature, prompt, ids(g.Tokens))
		if err != nil {
			t.Fatal(err)
		}
		for i := range scored {
			scored[i].Gradient = nil
		}
		if d := cmp.Diff(g.Tokens, scored); d != "" {
			t.Fatalf("Score differs from Sample (-sampled +scored):\n%s", d)
		}
	})
}

// A turn that is cut anywhere and taken up again stays in the grammar: what is
// sampled next scores as one turn.
func TestAnInterruptedTurnGoesOn(t *testing.T) {
	w := newWorld(t)
	prompts := w.situations(t)
	rapid.Check(t, func(t *rapid.T) {
		// The last prompt is no conversation: there, a turn has no beginning that could be told from it.
		prompt := rapid.SampledFrom(prompts[:len(prompts)-1]).Draw(t, "prompt")
		p := Initial()
		r := Request{Prompt: prompt, Seed: rapid.Uint64().Draw(t, "seed"), MaxTokens: 500, Sampling: Plain}
		whole, err := w.pol.Sample(p, r)
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(whole.Tokens)-1).Draw(t, "cut")
		begun := ids(whole.Tokens[:cut])
		r.Prompt = slices.Concat(prompt, begun)
		rest, err := w.pol.Sample(p, r)
		if err != nil {
			t.Fatal(err)
		}
		scored, err := w.pol.Score(p, 1, prompt, append(begun, ids(rest.Tokens)...))
		if err != nil {
			t.Fatal(err)
		}
		for i, tok := range scored {
			if tok.Foreign {
				t.Fatalf("token %d of the joined turn is foreign", i)
			}
			if i >= cut && tok.Logprob != rest.Tokens[i-cut].Logprob {
				t.Fatalf("token %d: scored %v in the whole turn, sampled at %v", i, tok.Logprob, rest.Tokens[i-cut].Logprob)
			}
		}
	})
}

// At every token the probabilities of all that may follow add up to 1, and samples
// come as often as their logprobs say.
func TestSamplesComeAsOftenAsTheirLogprobsSay(t *testing.T) {
	w := newWorld(t)
	prompt := w.prompt(t, true, weng, "x", nameErr)
	count, logprob := map[string]int{}, map[string]float64{}
	const n = 20000
	for seed := range uint64(n) {
		text, g := w.say(t, Initial(), prompt, seed)
		count[text]++
		var sum float64
		for _, tok := range g.Tokens {
			sum += tok.Logprob
		}
		logprob[text] = sum
	}
	var total float64
	for text, lp := range logprob {
		p := math.Exp(lp)
		total += p
		got := float64(count[text]) / n
		if sigma := math.Sqrt(p * (1 - p) / n); math.Abs(got-p) > 5*sigma+1e-4 {
			t.Errorf("%q came in %.4f of samples, its probability is %.4f", text, got, p)
		}
	}
	if total > 1+1e-9 || total < 0.97 {
		t.Errorf("the %d texts seen have probability %.4f together, want nearly 1", len(logprob), total)
	}
}

func TestGradientIsTheSlopeOfTheLogprob(t *testing.T) {
	w := newWorld(t)
	prompts := w.situations(t)
	rapid.Check(t, func(t *rapid.T) {
		p := drawParameters(t)
		prompt := rapid.SampledFrom(prompts).Draw(t, "prompt")
		temperature := rapid.SampledFrom([]float64{1, 0.6, 2}).Draw(t, "temperature")
		g, err := w.pol.Sample(p, Request{Prompt: prompt, Seed: rapid.Uint64().Draw(t, "seed"), MaxTokens: 300, Sampling: Plain})
		if err != nil {
			t.Fatal(err)
		}
		turn := ids(g.Tokens)
		at := func(p Parameters) []Token {
			scored, err := w.pol.Score(p, temperature, prompt, turn)
			if err != nil {
				t.Fatal(err)
			}
			return scored
		}
		for i, tok := range at(p) {
			if !tok.Decided {
				continue
			}
			for k, got := range tok.Gradient {
				const h = 1e-5
				up, down := p.Clone(), p.Clone()
				up[tok.Site][k] += h
				down[tok.Site][k] -= h
				want := (at(up)[i].Logprob - at(down)[i].Logprob) / (2 * h)
				if math.Abs(got-want) > 1e-5 {
					t.Fatalf("token %d, %s, choice %d: gradient %v, slope %v", i, tok.Site.Name(), k, got, want)
				}
			}
		}
	})
}

func TestSameSeedSameTokens(t *testing.T) {
	w := newWorld(t)
	prompt := w.prompt(t, true, weng)
	_, a := w.say(t, Initial(), prompt, 11)
	_, b := w.say(t, Initial(), prompt, 11)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("two samples of one seed differ:\n%s", d)
	}
	texts := map[string]bool{}
	for index := range 32 {
		g, err := w.pol.Sample(Initial(), Request{Prompt: prompt, Seed: 11, Index: index, MaxTokens: 500, Sampling: Plain})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := w.tok.Text(ids(g.Tokens))
		texts[text] = true
	}
	if len(texts) < 10 {
		t.Errorf("32 samples of one fork have only %d texts", len(texts))
	}
}

func TestWaysToEnd(t *testing.T) {
	w := newWorld(t)
	prompt := w.prompt(t, true, weng)
	ask := Request{Prompt: prompt, Seed: 1, MaxTokens: 3, Sampling: Plain}
	g, err := w.pol.Sample(Initial(), ask)
	if err != nil || g.Finish != Length || len(g.Tokens) != 3 {
		t.Errorf("max tokens 3: %d tokens, finish %v, %v; want 3, Length", len(g.Tokens), g.Finish, err)
	}
	ask.MaxTokens, ask.StopTokens = 500, []uint32{'.'}
	g, err = w.pol.Sample(Initial(), ask)
	if err != nil || g.Finish != Stopped || g.StopToken != '.' || g.Tokens[len(g.Tokens)-1].ID != '.' {
		t.Errorf("stop token: %+v, %v", g, err)
	}
	if _, err := w.pol.Sample(Initial(), Request{Prompt: prompt, MaxTokens: 0, Sampling: Plain}); err == nil {
		t.Error("max tokens 0: want an error")
	}
	if _, err := w.pol.Sample(Initial(), Request{Prompt: []uint32{257, 1 << 30}, MaxTokens: 5, Sampling: Plain}); err == nil {
		t.Error("token outside the vocabulary: want an error")
	}
}

func TestSamplingParameters(t *testing.T) {
	half := func() []float64 { return []float64{math.Log(0.5), math.Log(0.3), math.Log(0.2)} }
	inf := math.Inf(-1)
	for name, c := range map[string]struct {
		s    Sampling
		want []float64
	}{
		"plain":           {Plain, []float64{0.5, 0.3, 0.2}},
		"greedy":          {Sampling{Temperature: 0, TopP: 1}, []float64{1, 0, 0}},
		"temperature 0.5": {Sampling{Temperature: 0.5, TopP: 1}, []float64{0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38}},
		"top_p 0.6":       {Sampling{Temperature: 1, TopP: 0.6}, []float64{0.625, 0.375, 0}},
		"top_k 1":         {Sampling{Temperature: 1, TopP: 1, TopK: 1}, []float64{1, 0, 0}},
		"top_k 9":         {Sampling{Temperature: 1, TopP: 1, TopK: 9}, []float64{0.5, 0.3, 0.2}},
	} {
		m := half()
		c.s.process(m)
		for i, want := range c.want {
			if got := math.Exp(m[i]); math.Abs(got-want) > 1e-12 || want == 0 && m[i] != inf {
				t.Errorf("%s: probabilities[%d] = %v, want %v", name, i, got, want)
			}
		}
	}
}

// What the policy did not write is marked, from the first foreign token on, also
// what follows an end of turn.
func TestForeignTokens(t *testing.T) {
	w := newWorld(t)
	prompt := w.prompt(t, true, weng)
	_, g := w.say(t, Initial(), prompt, 1)
	turn := ids(g.Tokens)
	turn[4] = 'Z'
	for name, c := range map[string]struct {
		turn []uint32
		from int
	}{
		"changed": {turn, 4},
		"longer":  {append(ids(g.Tokens), 'x', 'y'), len(g.Tokens)},
		"unknown": {[]uint32{1 << 30}, 0},
	} {
		scored, err := w.pol.Score(Initial(), 1, prompt, c.turn)
		if err != nil || len(scored) != len(c.turn) {
			t.Fatalf("%s: %d tokens scored of %d, %v", name, len(scored), len(c.turn), err)
		}
		for i, tok := range scored {
			if tok.Foreign != (i >= c.from) || tok.ID != c.turn[i] {
				t.Errorf("%s: token %d: foreign %t; want it from %d on", name, i, tok.Foreign, c.from)
			}
		}
	}
	begun := slices.Concat(prompt, w.tok.Encode("Some other model wrote this"))
	if got, _ := w.say(t, Initial(), begun, 1); got != " I stop here." {
		t.Errorf("after foreign words it says %q", got)
	}
}

func TestParametersByName(t *testing.T) {
	p := Initial()
	back, err := FromNamed(p.Named())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(p, back); d != "" {
		t.Errorf("round trip:\n%s", d)
	}
	for name, spoil := range map[string]func(map[string]map[string]float64){
		"site missing":   func(m map[string]map[string]float64) { delete(m, "opening") },
		"site unknown":   func(m map[string]map[string]float64) { delete(m, "opening"); m["other"] = nil },
		"choice missing": func(m map[string]map[string]float64) { delete(m["opening"], "think") },
		"choice unknown": func(m map[string]map[string]float64) { delete(m["opening"], "think"); m["opening"]["other"] = 1 },
		"not a number":   func(m map[string]map[string]float64) { m["opening"]["think"] = math.NaN() },
	} {
		m := p.Named()
		spoil(m)
		if _, err := FromNamed(m); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}

// Any prompt is answered, in the grammar unless a turn in foreign words is open.
func FuzzSample(f *testing.F) {
	w := newWorld(f)
	for _, p := range w.situations(f) {
		text, err := w.tok.Decode(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint64(1), 50)
		f.Add(text+"Let me think", uint64(2), 3)
		f.Add(text+"<|im_end|>", uint64(3), 50)
	}
	f.Add("<|im_start|><|im_start|>user\n<tool_response>\n<|im_end|><|im_start|>", uint64(1), 9)
	f.Fuzz(func(t *testing.T, text string, seed uint64, limit int) {
		prompt := w.tok.Encode(text)
		g, err := w.pol.Sample(Initial(), Request{Prompt: prompt, Seed: seed, MaxTokens: 1 + int(uint(limit)%600), Sampling: Plain})
		if err != nil {
			t.Fatalf("Sample: %v", err)
		}
		if len(g.Tokens) == 0 {
			t.Fatal("no tokens")
		}
		scored, err := w.pol.Score(Initial(), 1, prompt, ids(g.Tokens))
		if err != nil || len(scored) != len(g.Tokens) {
			t.Fatalf("Score: %d tokens of %d, %v", len(scored), len(g.Tokens), err)
		}
		for i, tok := range scored {
			if !scored[0].Foreign && (tok.Foreign || tok.Logprob != g.Tokens[i].Logprob) {
				t.Fatalf("token %d: foreign %t, scored %v, sampled at %v", i, tok.Foreign, tok.Logprob, g.Tokens[i].Logprob)
			}
		}
	})
}

func BenchmarkSampleFirstTurn(b *testing.B) {
	w := newWorld(b)
	prompt := w.prompt(b, true, weng)
	p := Initial()
	var tokens int
	for i := range b.N {
		g, err := w.pol.Sample(p, Request{Prompt: prompt, Seed: uint64(i), MaxTokens: 1024, Sampling: Plain})
		if err != nil {
			b.Fatal(err)
		}
		tokens += len(g.Tokens)
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkSampleAfterError(b *testing.B) {
	w := newWorld(b)
	prompt := w.prompt(b, true, weng, goodCall, nameErr)
	p := Initial()
	for i := range b.N {
		if _, err := w.pol.Sample(p, Request{Prompt: prompt, Seed: uint64(i), MaxTokens: 1024, Sampling: Plain}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkScore(b *testing.B) {
	w := newWorld(b)
	prompt := w.prompt(b, true, weng)
	_, g := w.say(b, Initial(), prompt, 5)
	turn := ids(g.Tokens)
	for b.Loop() {
		if _, err := w.pol.Score(Initial(), 1, prompt, turn); err != nil {
			b.Fatal(err)
		}
	}
}
