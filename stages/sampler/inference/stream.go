package inference

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/sluice-rl/sluice/stages/sampler/rollout"
)

// Progress is told what a choice has so far, whenever that has grown. What it is given is
// good only during the call: the slices grow on. r bears the versions that the server has
// named until then, and nothing of its choices. It may be called by several goroutines at
// once, but by one for each choice.
type Progress func(i int, r Response, c Choice)

// maxEvent bounds one event of a stream. SGLang's repeat all that was sampled.
const maxEvent = 64 << 20

// errEnd: a stream's end was said.
var errEnd = errors.New("end of the stream")

// stream makes one request whose answer is a stream of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html), and gives the data of
// each to event, which returns errEnd for the last. A stream that ends before that is
// ErrCut. [DONE] is left to the dialects: not all say it.
func (t *transport) stream(ctx context.Context, url string, in any, event func(data []byte) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%w: encode request: %w", ErrAnswer, err)
	}
	return t.open(ctx, http.MethodPost, url, body, func(ctx context.Context, resp *http.Response) error {
		if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
			return fmt.Errorf("%w: asked for a stream of events, it answered with content type %.60q: does it stream?", ErrAnswer, kind)
		}
		err := events(io.LimitReader(resp.Body, maxAnswer), event)
		switch {
		case errors.Is(err, errEnd):
			// What follows is nothing; the connection can be used again.
			_, _ = io.CopyN(io.Discard, resp.Body, 1<<10)
			return nil
		case err == nil:
			return fmt.Errorf("%w before its end: %w", ErrCut, errTakenOn)
		case errors.Is(err, errRead):
			return fmt.Errorf("%w: %w", ErrCut, lost(ctx, err, true))
		}
		return err
	})
}

// errRead: the bytes of a stream could not be read on.
var errRead = errors.New("reading a stream")

// events splits a stream. An event that the stream ends within is none.
func events(r io.Reader, event func(data []byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4<<10), maxEvent)
	var data []byte
	for lines.Scan() {
		line := bytes.TrimSuffix(lines.Bytes(), []byte("\r"))
		if len(line) == 0 {
			if len(data) > 0 {
				if err := event(data); err != nil {
					return err
				}
				data = data[:0]
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
		case "error": // llama-server's way to fail, in older releases
			return streamError(value)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: %w", errRead, err)
	}
	return nil
}

// done is how most servers say that a stream has ended.
func done(data []byte) bool { return string(data) == "[DONE]" }

// serverError is what servers write into a stream whose status was 200 already.
type serverError struct {
	Message string `json:"message"`
	Code    int    `json:"code"`
}

// streamError is the error of an event that holds nothing else.
func streamError(data []byte) error {
	var e serverError
	if json.Unmarshal(data, &e) != nil {
		e.Message = string(data)
	}
	return e.err()
}

func (e serverError) err() error {
	if e.Code < 400 || e.Code > 599 {
		e.Code = http.StatusInternalServerError
	}
	return statusError("in a stream", e.Code, []byte(e.Message))
}

// collector puts the choices of a stream together.
type collector struct {
	r        Request
	out      Response
	finished []bool
	texts    []strings.Builder
}

func newCollector(r Request) *collector {
	c := &collector{r: r, finished: make([]bool, r.N), texts: make([]strings.Builder, r.N)}
	c.out.Choices = make([]Choice, r.N)
	c.out.promptTokens, c.out.completionTokens = -1, -1
	for i := range c.out.Choices {
		c.out.Choices[i].usage = -1
	}
	return c
}

// delta is what an event adds to a choice.
type delta struct {
	tokens   []uint32
	logprobs []float32
	ids      []uint32
	text     string
	// finish is "" while there is more to come.
	finish string
}

// add takes what an event says of one choice.
func (c *collector) add(index int, d delta) error {
	if index < 0 || index >= len(c.finished) {
		return fmt.Errorf("%w: choice of index %d, want 0 to %d", ErrAnswer, index, len(c.finished)-1)
	}
	if c.finished[index] && (len(d.tokens) > 0 || d.text != "") {
		return fmt.Errorf("%w: choice %d goes on after its end", ErrAnswer, index)
	}
	ch := &c.out.Choices[index]
	if n := len(ch.Tokens) + len(d.tokens); n > c.r.MaxTokens {
		return fmt.Errorf("%w: %d tokens sampled where at most %d were asked for", ErrAnswer, n, c.r.MaxTokens)
	}
	ch.Tokens, ch.Logprobs, ch.ids = append(ch.Tokens, d.tokens...), append(ch.Logprobs, d.logprobs...), append(ch.ids, d.ids...)
	c.texts[index].WriteString(d.text)
	ch.Text = c.texts[index].String()
	if len(ch.Tokens) != len(ch.Logprobs) {
		return fmt.Errorf("%w: %d token ids, %d logprobs in a stream: must be equal", ErrAnswer, len(ch.Tokens), len(ch.Logprobs))
	}
	if d.text != "" {
		ch.Whole = Whole{Tokens: len(ch.Tokens), Text: len(ch.Text)}
	}
	if d.finish != "" {
		c.finished[index], ch.finish = true, d.finish
		if f, err := finishOf(d.finish); err == nil {
			ch.Finish, ch.Ended = f, true
		}
	}
	if c.r.Progress != nil && (len(d.tokens) > 0 || d.finish != "") {
		head := c.out
		head.Choices = nil
		c.r.Progress(index, head, *ch)
	}
	return nil
}

// end is the answer, where err is why the stream ended, nil if its end was said. A stream
// that broke off is an answer too, of cut choices, if it brought any token; else it is
// the error.
func (c *collector) end(ctx context.Context, err error) (Response, error) {
	if err != nil && (ctx.Err() != nil || !c.any() || errors.Is(err, ErrAnswer)) {
		return Response{}, err
	}
	for i, finished := range c.finished {
		if finished {
			continue
		}
		why := err
		if why == nil {
			// As vLLM's generate does where an abort comes without a token.
			why = fmt.Errorf("%w: it says how choice %d ended nowhere: %w", ErrCut, i, errTakenOn)
		} else if !errors.Is(why, ErrCut) {
			why = fmt.Errorf("%w: %w", ErrCut, err)
		}
		c.out.Choices[i].cut = why
	}
	return c.out, nil
}

func (c *collector) any() bool {
	for _, ch := range c.out.Choices {
		if len(ch.Tokens) > 0 {
			return true
		}
	}
	return false
}

// inspectCut reads a choice whose stream broke off: its tokens count as far as they can be
// used.
func (c *Choice) inspectCut(r Request, vocabulary int) error {
	if len(c.Tokens) == 0 {
		return c.cut
	}
	c.finish, c.Versions = "abort", nil
	if err := c.inspect(r, vocabulary); err != nil {
		return err
	}
	c.Finish = rollout.Cut
	return nil
}

// streamOptions asks for the server's own count.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// streaming are the fields that ask vLLM and its like for a stream.
type streaming struct {
	Stream  bool           `json:"stream,omitempty"`
	Options *streamOptions `json:"stream_options,omitempty"`
}

func newStreaming(r Request) streaming {
	if r.Progress == nil {
		return streaming{}
	}
	return streaming{Stream: true, Options: &streamOptions{IncludeUsage: true}}
}

// appended is what a field that repeats all so far, or does not, adds: of all have so far
// values were known, and the server counts total now.
func appended[T any](have, total int, field []T) ([]T, error) {
	switch {
	case len(field) == total:
		return field[min(have, total):], nil
	case len(field) == total-have:
		return field, nil
	}
	return nil, fmt.Errorf("%w: %d values in a stream where %d are new and %d are in all", ErrAnswer, len(field), total-have, total)
}
