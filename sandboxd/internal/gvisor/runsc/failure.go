package runsc

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// LogFile is where runsc writes its own failures for a sandbox with this root.
func LogFile(root string) string { return filepath.Join(root, "runsc.log") }

// PanicFile is where the Go runtime of a sandbox's kernel writes its last words.
func PanicFile(root string) string { return filepath.Join(root, "panic.log") }

// Failure returns the last error that runsc logged, "" if none. The log is JSON
// objects one after another, without separators.
func Failure(root string) string {
	f, err := os.Open(LogFile(root))
	if err != nil {
		return ""
	}
	defer f.Close()
	var last string
	for d := json.NewDecoder(io.LimitReader(f, 1<<20)); ; {
		var entry struct {
			Msg   string `json:"msg"`
			Level string `json:"level"`
		}
		if err := d.Decode(&entry); err != nil {
			return strings.TrimSpace(last)
		}
		if entry.Level == "error" {
			last = entry.Msg
		}
	}
}

// panicBytes and panicText bound what is read and told of a panic: the reason
// stands first, a stack per goroutine follows.
const (
	panicBytes = 64 << 10
	panicText  = 300
)

// Panic returns why the kernel's Go runtime gave up, "" if it did not.
func Panic(root string) string {
	f, err := os.Open(PanicFile(root))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, panicBytes))
	if err != nil {
		return ""
	}
	first := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if first == "" {
			first = line
		}
		for _, mark := range []string{"panic:", "fatal error:", "runtime:", "SIG"} {
			if strings.HasPrefix(line, mark) {
				return line[:min(len(line), panicText)]
			}
		}
	}
	return first[:min(len(first), panicText)]
}
