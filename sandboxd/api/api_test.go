package api

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Whatever bytes a program writes, JSON carries them without loss, and what a
// person reads is valid UTF-8.
func FuzzResultKeepsBytes(f *testing.F) {
	f.Add([]byte("plain"), []byte(""))
	f.Add([]byte("\xff\x00\xc3("), []byte("\u2028</script>\""))
	f.Add([]byte("\xed\xa0\x80"), []byte("�"))
	f.Fuzz(func(t *testing.T, stdout, stderr []byte) {
		in := Result{Outcome: OK, Stdout: Stream{Kept: stdout, Total: 9, Truncated: true}, Stderr: Stream{Kept: stderr}}
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(data) {
			t.Fatalf("the object is not valid UTF-8: %q", data)
		}
		var out Result
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Stdout.Kept, stdout) || !bytes.Equal(out.Stderr.Kept, stderr) || out.Stdout.Total != 9 || !out.Stdout.Truncated {
			t.Fatalf("got %+v from %s", out, data)
		}
	})
}

func TestShapeOfTheResult(t *testing.T) {
	data, err := json.Marshal(Result{Outcome: Error, ExitCode: 1, Exception: "KeyError", Stdout: Stream{Kept: []byte("a\xffb"), Total: 3}, WallMS: 1.5, Image: "bare"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"outcome":"error","exit_code":1,"exception":"KeyError","stdout":"a` + "\uFFFD" + `b","stdout_base64":"Yf9i","stdout_bytes":3,"stdout_truncated":false,` +
		`"stderr":"","stderr_bytes":0,"stderr_truncated":false,"wall_ms":1.5,"cpu_ms":0,"peak_memory_bytes":0,"queue_wait_ms":0,"start_ms":0,"warm":false,"image":"bare","sandbox_id":"",` +
		`"protections":{"isolation":"","memory":"","cpu":"","processes":"","disk":"","network":"","output":"","wall_time":"","tested":false,"missing":null}}`
	if string(data) != want {
		t.Errorf("got  %s\nwant %s", data, want)
	}
}

func TestNamesHaveALimit(t *testing.T) {
	long := strings.Repeat("x", MaxLabel+1)
	for name, r := range map[string]Request{"trajectory": {Trajectory: long}, "label": {Label: long}, "owner": {Owner: long}} {
		if err := r.Validate(1, time.Hour); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("a long %s: %v", name, err)
		}
	}
	fits := strings.Repeat("x", MaxLabel)
	if err := (Request{Trajectory: fits, Label: fits, Owner: fits}).Validate(1, time.Hour); err != nil {
		t.Error(err)
	}
}
