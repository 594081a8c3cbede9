package exitcall

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"syscall"

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

// senders are the calls by which a process can have a signal sent, to itself as
// well: kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo,
// pidfd_send_signal, timer_create, which may name any signal, setrlimit and
// prlimit64, whose limit on CPU time kills, and ptrace.
func senders() []int {
	if runtime.GOARCH == "arm64" {
		return []int{129, 130, 131, 138, 240, 424, 107, 164, 261, 117}
	}
	return []int{62, 200, 234, 129, 297, 424, 222, 160, 302, 101}
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

// configuration asks for a report of each exit_group, sent once the call has set
// the status for good, of each thread that ends, for whatever reason, and of each
// call that may send a signal, before it does; with the numbers of the process and
// of the thread.
func configuration(socket string) session {
	var s session
	s.Trace.Name = "Default" // gVisor knows no other
	context := []string{"group_id", "thread_id"}
	s.Trace.Points = []point{
		{Name: fmt.Sprintf("syscall/sysno/%d/exit", exitGroup()), Context: context},
		{Name: "sentry/task_exit", Context: context},
	}
	for _, number := range senders() {
		s.Trace.Points = append(s.Trace.Points, point{Name: fmt.Sprintf("syscall/sysno/%d/enter", number), Context: context})
	}
	s.Trace.Sinks = []sink{{Name: "remote", Config: map[string]string{"endpoint": socket}}}
	return s
}

// Field numbers of gVisor's messages, and the types of those that are asked for
// (pkg/sentry/seccheck/points of gvisor.dev/gvisor).
const (
	typeTaskExit   = 5
	typeRawSyscall = 6
	headerBytes    = 8

	fieldContext = 1 // of Syscall and TaskExit: ContextData
	fieldStatus  = 2 // of TaskExit
	fieldNumber  = 4 // of Syscall
	fieldArg1    = 5 // of Syscall
	fieldThread  = 2 // of ContextData
	fieldGroup   = 4 // of ContextData
)

// report is what one message says.
type report struct {
	group, thread int
	// status is written as shells do: 128+N for signal N.
	status int
	// ended says that the process as a whole has ended. A thread that ends by
	// itself may be the first of several; its status counts only if nothing
	// else is heard.
	ended bool
	// signal is what it died of, 0 if it exited.
	signal syscall.Signal
	// sends says instead that the process calls for a signal to be sent.
	sends bool
}

// decode reads one message. ok is false for anything else than the two reports.
func decode(message []byte) (r report, ok bool) {
	if len(message) < headerBytes {
		return report{}, false
	}
	kind := binary.LittleEndian.Uint16(message[2:])
	header := int(binary.LittleEndian.Uint16(message))
	if header < headerBytes || header > len(message) || kind != typeTaskExit && kind != typeRawSyscall {
		return report{}, false
	}
	numbers := map[protowire.Number]uint64{}
	var context []byte
	ok = fields(message[header:], func(field protowire.Number, n uint64, bytes []byte) {
		if numbers[field] = n; field == fieldContext {
			context = bytes
		}
	})
	number := int(numbers[fieldNumber])
	r.sends = kind == typeRawSyscall && slices.Contains(senders(), number)
	if !ok || kind == typeRawSyscall && number != exitGroup() && !r.sends {
		return report{}, false
	}
	ok = fields(context, func(field protowire.Number, n uint64, _ []byte) {
		switch field {
		case fieldGroup:
			r.group = int(n)
		case fieldThread:
			r.thread = int(n)
		}
	})
	if r.sends {
		return r, ok
	}
	if kind == typeRawSyscall {
		r.status, r.ended = int(numbers[fieldArg1]&0xff), true
		return r, ok
	}
	ws := syscall.WaitStatus(numbers[fieldStatus])
	if ws.Signaled() {
		r.signal = ws.Signal()
		r.status, r.ended = 128+int(r.signal), true
		return r, ok
	}
	r.status = int(uint8(ws >> 8))
	return r, ok
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
