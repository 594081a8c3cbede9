package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
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

// DAPO's outer template, which published rows carry around the problem.
const (
	dapoPrefix = "Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\n"
	dapoSuffix = "\n\nRemember to put your answer on its own line after \"Answer:\"."
)

const defaultSource = "dapo_math"

// MaxText bounds question, answer and id together, in bytes: a problem travels in
// every event of its trajectories.
const MaxText = 1 << 20

// Normalise reads one row of any of the layouts. index, the row's number in its file
// from 0, is the id of a row without one. defaultDataSource names rows that do not say
// where they are from; "" means "dapo_math" for DAPO's layout, "gsm8k" for GSM8K's and
// "math" for plain ones.
func Normalise(o Object, index int, defaultDataSource string) (Row, error) {
	if _, ok := o["prompt"]; ok {
		return normaliseDAPO(o, index, defaultDataSource)
	}
	for _, field := range []string{"question", "problem"} {
		if q, ok := o[field].(string); ok {
			return normalisePlain(o, q, index, defaultDataSource)
		}
	}
	return Row{}, refuse(ReasonPromptMissing, "no field prompt, question or problem")
}

func normaliseDAPO(o Object, index int, source string) (Row, error) {
	question, err := promptText(o["prompt"])
	if err != nil {
		return Row{}, err
	}
	question = strings.TrimPrefix(question, dapoPrefix)
	question = strings.TrimSuffix(question, dapoSuffix)
	reward, _ := o["reward_model"].(Object)
	extra, _ := o["extra_info"].(Object)
	return build(question, reward["ground_truth"], extra["index"], o["data_source"], index, or(source, defaultSource))
}

// promptText is the content of the user's message: the last one of role user, or the
// only message there is.
func promptText(prompt any) (string, error) {
	if prompt == nil {
		return "", refuse(ReasonPromptMissing, "prompt is null")
	}
	list, ok := prompt.([]any)
	if !ok {
		return "", refuse(ReasonPromptNotAList, "prompt is %s, want a list of {role, content}", kind(prompt))
	}
	if len(list) == 0 {
		return "", refuse(ReasonPromptMissing, "prompt is an empty list")
	}
	var chosen Object
	for i, m := range list {
		message, ok := m.(Object)
		if !ok {
			return "", refuse(ReasonPromptNotAList, "prompt[%d] is %s, want {role, content}", i, kind(m))
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

// leftOut names what a row has that its problem will not have.
func leftOut(o Object) []string {
	var what []string
	if list, ok := o["prompt"].([]any); ok {
		for _, m := range list {
			if message, ok := m.(Object); ok && message["role"] == "system" && len(list) > 1 {
				what = append(what, "system_message")
				break
			}
		}
	}
	reward, _ := o["reward_model"].(Object)
	for _, answer := range []any{o["answer"], reward["ground_truth"]} {
		if list, ok := answer.([]any); ok && len(list) > 1 {
			what = append(what, "further_answers")
			break
		}
	}
	return what
}

func normalisePlain(o Object, question string, index int, source string) (Row, error) {
	answer := o["answer"]
	fallback := "math"
	if s, ok := answer.(string); ok {
		if i := strings.LastIndex(s, "#### "); i >= 0 {
			// GSM8K writes a worked solution, then the reference, with
			// thousands separators that belong to no number.
			answer = strings.ReplaceAll(s[i+len("#### "):], ",", "")
			fallback = "gsm8k"
		}
	}
	id := o["id"]
	if id == nil {
		id = o["unique_id"]
	}
	return build(question, answer, id, o["data_source"], index, or(source, fallback))
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
	switch v.(type) {
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
	}
	return "a number"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
