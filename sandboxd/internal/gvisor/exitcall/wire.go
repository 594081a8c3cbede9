package exitcall

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"google.golang.org/protobuf/encoding/protowire"
)

// exitGroup is the system call's number inside a sandbox, which has the host's
// architecture.
func exitGroup() int {
	if runtime.GOARCH == "arm64" {
		return 94
	}
	return 231
}

type session struct {
	Trace struct {
		Name   string  `json:"name"`
		Points []point `json:"points"`
		Sinks  []sink  `json:"sinks"`
	} `json:"trace_session"`
}

type point struct {
	Name    string   `json:"name"`
	Context []string `json:"context_fields"`
}

type sink struct {
	Name   string            `json:"name"`
	Config map[string]string `json:"config"`
}

// configuration asks for one report per exit_group, sent once the call has set
// the status for good, with the number of the process.
func configuration(socket string) session {
	var s session
	s.Trace.Name = "Default" // gVisor knows no other
	s.Trace.Points = []point{{Name: fmt.Sprintf("syscall/sysno/%d/exit", exitGroup()), Context: []string{"group_id"}}}
	s.Trace.Sinks = []sink{{Name: "remote", Config: map[string]string{"endpoint": socket}}}
	return s
}

// Field numbers of gVisor's messages, and the type of the one that is asked for
// (pkg/sentry/seccheck/points of gvisor.dev/gvisor).
const (
	typeRawSyscall = 6
	headerBytes    = 8

	fieldContext = 1 // of Syscall: ContextData
	fieldNumber  = 4 // of Syscall
	fieldArg1    = 5 // of Syscall
	fieldGroup   = 4 // of ContextData
)

// decode reads one message: which process called exit_group, and with what
// status. ok is false for anything else.
func decode(message []byte) (group, status int, ok bool) {
	if len(message) < headerBytes || binary.LittleEndian.Uint16(message[2:]) != typeRawSyscall {
		return 0, 0, false
	}
	header := int(binary.LittleEndian.Uint16(message))
	if header < headerBytes || header > len(message) {
		return 0, 0, false
	}
	var number, arg uint64
	var context []byte
	ok = fields(message[header:], func(field protowire.Number, n uint64, bytes []byte) {
		switch field {
		case fieldContext:
			context = bytes
		case fieldNumber:
			number = n
		case fieldArg1:
			arg = n
		}
	})
	if !ok || number != uint64(exitGroup()) {
		return 0, 0, false
	}
	ok = fields(context, func(field protowire.Number, n uint64, _ []byte) {
		if field == fieldGroup {
			group = int(n)
		}
	})
	return group, int(arg & 0xff), ok
}

// fields calls f for each field of a message that is a number or bytes.
func fields(message []byte, f func(field protowire.Number, n uint64, bytes []byte)) bool {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		size := protowire.ConsumeFieldValue(field, kind, message)
		if size < 0 {
			return false
		}
		switch kind {
		case protowire.VarintType:
			value, _ := protowire.ConsumeVarint(message)
			f(field, value, nil)
		case protowire.BytesType:
			value, _ := protowire.ConsumeBytes(message)
			f(field, 0, value)
		}
		message = message[size:]
	}
	return true
}
