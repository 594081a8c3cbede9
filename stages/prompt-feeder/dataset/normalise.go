package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Row is one problem as every other part of Sluice knows it.
type Row struct {
	ID         string `json:"id"`
	Question   string `json:"question"`
	Answer     string `json:"answer"`
	DataSource string `json:"data_source"`
}

// Object is an input row: what JSON decodes to with numbers kept as json.Number.
type Object = map[string]any

// Reason is why a row cannot be used, as a class to count by.
type Reason string

// The reasons for which a row is refused.
const (
	ReasonNotAnObject     Reason = "not_an_object"
	ReasonPromptMissing   Reason = "prompt_missing"
	ReasonPromptNotAList  Reason = "prompt_not_a_list_of_messages"
	ReasonQuestionEmpty   Reason = "question_empty"
	ReasonTooLong         Reason = "too_long"
	ReasonAnswerMissing   Reason = "answer_missing"
	ReasonAnswerEmpty     Reason = "answer_empty"
	ReasonAnswerNotScalar Reason = "answer_not_text_or_number"
	ReasonIDNotScalar     Reason = "id_not_text_or_number"
	ReasonNotUTF8         Reason = "not_utf8"
	ReasonNUL             Reason = "nul_character"
	ReasonFieldCount      Reason = "wrong_number_of_fields"
)

// RefusedError says why one row cannot be used. It wraps ErrRefused.
type RefusedError struct {
	Reason Reason
	Detail string
}

// ErrRefused is in the chain of every refusal of a row.
var ErrRefused = errors.New("row refused")

func (e *RefusedError) Error() string { return string(e.Reason) + ": " + e.Detail }

// Unwrap gives ErrRefused.
func (e *RefusedError) Unwrap() error { return ErrRefused }

func refuse(r Reason, format string, args ...any) error {
	return &RefusedError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// What published DAPO rows carry around the problem: the template of the original, which
// asks for an answer line, and that of later conversions.
const (
	dapoPrefix      = "Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
	dapoSuffix      = "\n\nRemember to put your answer on its own line after \"Answer:\"."
	dapoShortPrefix = "Solve the following math problem step by step.\n\n"
)

// bare is the problem without DAPO's templates.
func bare(prompt string) string {
	if problem, ok := strings.CutPrefix(prompt, dapoShortPrefix); ok {
		return problem
	}
	return strings.TrimSuffix(strings.TrimPrefix(prompt, dapoPrefix), dapoSuffix)
}

const defaultSource = "dapo_math"

// MaxText bounds question, answer and id together, in bytes: a problem travels in
// every event of its trajectories.
const MaxText = 1 << 20

// Layout says where a row keeps what. The zero value finds it in any of the published
// layouts.
type Layout struct {
	// Question and Answer name the fields to take, in place of those of the published
	// layouts. A dot leads into an object: reward_model.ground_truth.
	Question, Answer string
	// DataSource names rows that do not say where they are from; "" means "dapo_math"
	// for DAPO's layout, "gsm8k" for GSM8K's and "math" for others.
	DataSource string
}

// Normalise reads one row. index, the row's number in its file from 0, is the id of a row
// without one.
func (l Layout) Normalise(o Object, index int) (Row, error) {
	question, err := l.question(o)
	if err != nil {
		return Row{}, err
	}
	reward, isVerl := o["reward_model"].(Object)
	_, hasExtra := o["extra_info"].(Object)
	_, hasPrompt := o["prompt"]
	fallback := "math"
	if hasPrompt && (isVerl || hasExtra) {
		fallback = defaultSource
	}
	var answer any
	switch {
	case l.Answer != "":
		var ok bool
		if answer, ok = lookup(o, l.Answer); !ok {
			return Row{}, refuse(ReasonAnswerMissing, "no field %s, only %s", l.Answer, fieldNames(o))
		}
	case isVerl:
		answer = reward["ground_truth"]
	default:
		answer = o[answerField(o)]
		if answerField(o) == "" {
			answer = reply(o)
		}
	}
	if s, ok := answer.(string); ok && (!isVerl || l.Answer != "") {
		if i := strings.LastIndex(s, "#### "); i >= 0 {
			// GSM8K writes a worked solution, then the reference, with
			// thousands separators that belong to no number.
			answer = strings.ReplaceAll(s[i+len("#### "):], ",", "")
			fallback = "gsm8k"
		}
	}
	return build(question, answer, idOf(o), o["data_source"], index, or(l.DataSource, fallback))
}

// idOf is what a row names itself by, nil if by nothing.
func idOf(o Object) any {
	extra, hasExtra := o["extra_info"].(Object)
	if _, hasPrompt := o["prompt"]; hasPrompt && hasExtra {
		return extra["index"]
	}
	if id := o["id"]; id != nil {
		return id
	}
	return o["unique_id"]
}

// The fields of published layouts, in the order in which they are looked for.
var (
	questionFields = []string{"prompt", "question", "problem", "messages"}
	answerFields   = []string{"answer", "ground_truth", "solution"}
)

func (l Layout) question(o Object) (string, error) {
	if l.Question != "" {
		v, ok := lookup(o, l.Question)
		if !ok {
			return "", refuse(ReasonPromptMissing, "no field %s, only %s", l.Question, fieldNames(o))
		}
		return text(v, l.Question)
	}
	for _, field := range questionFields {
		v, ok := o[field]
		if _, isText := v.(string); !ok || !isText && (field == "question" || field == "problem") {
			continue
		}
		q, err := text(v, field)
		if field == "prompt" {
			q = bare(q)
		}
		return q, err
	}
	return "", refuse(ReasonPromptMissing, "no field %s: name it with --question-field", strings.Join(questionFields, ", "))
}

// text is a question as text or within messages.
func text(v any, field string) (string, error) {
	s, ok := v.(string)
	if !ok {
		return userText(v, field)
	}
	if strings.HasPrefix(strings.TrimSpace(s), "[{") && strings.Contains(s, "role") {
		return "", refuse(ReasonPromptNotAList, "%s is a list of messages written as text: write the file as JSONL or parquet", field)
	}
	return s, nil
}

// answerField is the first of answerFields that a row has.
func answerField(o Object) string {
	for _, field := range answerFields {
		if _, ok := o[field]; ok {
			return field
		}
	}
	return ""
}

// reply is what the assistant says to the question of a row's messages, nil if nothing.
func reply(o Object) any {
	if _, ok := o["prompt"]; ok {
		return nil
	}
	list, _ := o["messages"].([]any)
	for i := len(list) - 1; i >= 0; i-- {
		switch message, _ := list[i].(Object); message["role"] {
		case "assistant":
			return message["content"]
		case "user":
			return nil
		}
	}
	return nil
}

// lookup finds a field by its name, or by a path with dots.
func lookup(o Object, path string) (any, bool) {
	if v, ok := o[path]; ok {
		return v, true
	}
	outer, inner, dotted := strings.Cut(path, ".")
	if child, ok := o[outer].(Object); ok && dotted {
		return lookup(child, inner)
	}
	return nil, false
}

func fieldNames(o Object) string {
	names := slices.Sorted(maps.Keys(o))
	if len(names) > 20 {
		names = append(names[:20], "others")
	}
	return strings.Join(names, ", ")
}

// userText is the content of the user's message: the last one of role user, or the
// only message there is.
func userText(prompt any, field string) (string, error) {
	if prompt == nil {
		return "", refuse(ReasonPromptMissing, "%s is null", field)
	}
	list, ok := prompt.([]any)
	if !ok {
		return "", refuse(ReasonPromptNotAList, "%s is %s, want text or a list of {role, content}", field, kind(prompt))
	}
	if len(list) == 0 {
		return "", refuse(ReasonPromptMissing, "%s is an empty list", field)
	}
	var chosen Object
	for i, m := range list {
		message, ok := m.(Object)
		if !ok {
			return "", refuse(ReasonPromptNotAList, "%s[%d] is %s, want {role, content}", field, i, kind(m))
		}
		if message["role"] == "user" || len(list) == 1 {
			chosen = message
		}
	}
	if chosen == nil {
		return "", refuse(ReasonPromptMissing, "none of %d messages has role user", len(list))
	}
	content, ok := chosen["content"].(string)
	if !ok {
		return "", refuse(ReasonQuestionEmpty, "the user's message has no text content but %s", kind(chosen["content"]))
	}
	return content, nil
}

// leftOut names what a row has that its problem will not have, or has from elsewhere than
// a field of its own.
func (l Layout) leftOut(o Object) []string {
	var what []string
	system, user := 0, 0
	list := l.messages(o)
	for _, m := range list {
		switch message, _ := m.(Object); message["role"] {
		case "system":
			system++
		case "user":
			user++
		}
	}
	if system > 0 && len(list) > 1 {
		what = append(what, "system_message")
	}
	if user > 1 {
		what = append(what, "earlier_turns")
	}
	reward, isVerl := o["reward_model"].(Object)
	answers := []any{o["answer"], reward["ground_truth"]}
	if v, ok := lookup(o, l.Answer); ok && l.Answer != "" {
		answers = []any{v}
	}
	for _, answer := range answers {
		if list, ok := answer.([]any); ok && len(list) > 1 {
			what = append(what, "further_answers")
			break
		}
	}
	if l.Answer == "" && !isVerl && answerField(o) == "" {
		what = append(what, "answer_of_assistant")
	}
	return what
}

// messages is the list that the question is taken from, nil if it stands in a text.
func (l Layout) messages(o Object) []any {
	if l.Question != "" {
		v, _ := lookup(o, l.Question)
		list, _ := v.([]any)
		return list
	}
	for _, field := range questionFields {
		switch v := o[field].(type) {
		case string:
			return nil
		case []any:
			return v
		}
	}
	return nil
}

func build(question string, answer, id, source any, index int, defaultSource string) (Row, error) {
	row := Row{Question: strings.TrimSpace(question), DataSource: defaultSource}
	if row.Question == "" {
		return Row{}, refuse(ReasonQuestionEmpty, "the question is empty, or was nothing but the outer template")
	}
	var err error
	if row.Answer, err = answerText(answer); err != nil {
		return Row{}, err
	}
	if row.ID, err = idText(id, index); err != nil {
		return Row{}, err
	}
	if s, ok := source.(string); ok && s != "" {
		row.DataSource = s
	}
	for _, f := range []struct{ name, text string }{{"question", row.Question}, {"answer", row.Answer}, {"id", row.ID}, {"data_source", row.DataSource}} {
		if !utf8.ValidString(f.text) {
			return Row{}, refuse(ReasonNotUTF8, "the %s is no UTF-8: convert the file, from Latin-1 perhaps", f.name)
		}
		if strings.ContainsRune(f.text, 0) {
			return Row{}, refuse(ReasonNUL, "the %s holds a NUL character", f.name)
		}
	}
	if n := row.size(); n > MaxText {
		return Row{}, refuse(ReasonTooLong, "question, answer and id have %d bytes, want at most %d", n, MaxText)
	}
	return row, nil
}

func (r Row) size() int { return len(r.ID) + len(r.Question) + len(r.Answer) + len(r.DataSource) }

func answerText(v any) (string, error) {
	if list, ok := v.([]any); ok {
		if len(list) == 0 {
			return "", refuse(ReasonAnswerEmpty, "the list of answers is empty")
		}
		v = list[0]
	}
	if v == nil {
		return "", refuse(ReasonAnswerMissing, "there is no reference answer")
	}
	s, ok := scalar(v)
	if _, text := v.(string); !text {
		// 27.0 is how a table writes the number 27.
		if whole, zeros, dot := strings.Cut(s, "."); dot && strings.Trim(zeros, "0") == "" {
			s = whole
		}
	}
	if !ok {
		return "", refuse(ReasonAnswerNotScalar, "the answer is %s, want text or a number", kind(v))
	}
	if s = strings.TrimSpace(s); s == "" {
		return "", refuse(ReasonAnswerEmpty, "the answer is empty")
	}
	return s, nil
}

func idText(v any, index int) (string, error) {
	if v == nil {
		return fmt.Sprint(index), nil
	}
	s, ok := scalar(v)
	if !ok {
		return "", refuse(ReasonIDNotScalar, "the id is %s, want text or a number", kind(v))
	}
	if s == "" {
		return fmt.Sprint(index), nil
	}
	return s, nil
}

// scalar writes text and numbers as they stand, so that 0 stays "0".
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case int64:
		return fmt.Sprint(v), true
	case int32:
		return fmt.Sprint(v), true
	case float64:
		b, err := json.Marshal(v)
		return string(b), err == nil
	}
	return "", false
}

func kind(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case Object:
		return "an object"
	case notUnderstood:
		return "of type " + string(v)
	}
	return "a number"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
