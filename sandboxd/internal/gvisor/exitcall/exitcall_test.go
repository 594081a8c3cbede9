package exitcall

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-rl/sluice/sandboxd/internal/sandbox"
)

// call is a report of a system call as gVisor's kernel writes it.
func call(kind uint16, number int, arg, group uint64) []byte {
	out := opening(kind, group, 1)
	out = protowire.AppendVarint(protowire.AppendTag(out, fieldNumber, protowire.VarintType), uint64(number))
	return protowire.AppendVarint(protowire.AppendTag(out, fieldArg1, protowire.VarintType), arg)
}

// taskExit is a report of a thread's end.
func taskExit(group, thread uint64, status syscall.WaitStatus) []byte {
	return protowire.AppendVarint(protowire.AppendTag(opening(typeTaskExit, group, thread), fieldStatus, protowire.VarintType), uint64(status))
}

func opening(kind uint16, group, thread uint64) []byte {
	out := make([]byte, headerBytes)
	binary.LittleEndian.PutUint16(out, headerBytes)
	binary.LittleEndian.PutUint16(out[2:], kind)
	context := protowire.AppendVarint(protowire.AppendTag(nil, fieldGroup, protowire.VarintType), group)
	context = protowire.AppendVarint(protowire.AppendTag(context, fieldThread, protowire.VarintType), thread)
	return protowire.AppendBytes(protowire.AppendTag(out, fieldContext, protowire.BytesType), context)
}

func TestDecode(t *testing.T) {
	whole := call(typeRawSyscall, exitGroup(), 3, 1)
	for _, tt := range []struct {
		name    string
		message []byte
		want    report
		ok      bool
	}{
		{"an exit", whole, report{group: 1, thread: 1, status: 3, ended: true}, true},
		{"a status is one byte", call(typeRawSyscall, exitGroup(), 0x1ff, 1), report{group: 1, thread: 1, status: 255, ended: true}, true},
		{"another process", call(typeRawSyscall, exitGroup(), 0, 7), report{group: 7, thread: 1, ended: true}, true},
		{"a signal", taskExit(1, 4, 9), report{group: 1, thread: 4, status: 137, ended: true, signal: 9}, true},
		{"a fault that would dump core", taskExit(1, 1, 0x80|11), report{group: 1, thread: 1, status: 139, ended: true, signal: 11}, true},
		{"a signal is sent", call(typeRawSyscall, senders()[2], 9, 5), report{group: 5, thread: 1, sends: true}, true},
		{"a thread that leaves", taskExit(1, 1, 3<<8), report{group: 1, thread: 1, status: 3}, true},
		{"another call", call(typeRawSyscall, 1, 0, 1), report{}, false},
		{"another message", call(9, exitGroup(), 0, 1), report{}, false},
		{"nothing", nil, report{}, false},
		{"cut short", whole[:len(whole)-1], report{}, false},
		{"a header that lies", append([]byte{0xff, 0xff}, whole[2:]...), report{}, false},
	} {
		if got, ok := decode(tt.message); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: got %+v, %v; want %+v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(call(typeRawSyscall, exitGroup(), 3, 1))
	f.Add(taskExit(1, 1, 9))
	f.Add([]byte{8, 0, 6, 0, 0, 0, 0, 0, 0x0a, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		if r, ok := decode(message); ok && (r.status < 0 || r.status > 255) {
			t.Errorf("status %d", r.status)
		}
	})
}

// A sandbox's report reaches who waits for its runtime, once, and nobody else.
func TestListener(t *testing.T) {
	dir := t.TempDir()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	mine, other := l.Expect(os.Getpid(), 1), l.Expect(1, 1)
	conn, err := net.Dial("unixpacket", filepath.Join(dir, "exits.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(message []byte) {
		t.Helper()
		if _, err := conn.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	greeting := []byte{8, 1}
	send(greeting)
	answer := make([]byte, 64)
	if n, err := conn.Read(answer); err != nil || string(answer[:n]) != string(greeting) {
		t.Fatalf("the greeting is answered by %q, %v", answer[:n], err)
	}
	send(call(typeRawSyscall, exitGroup(), 9, 2)) // a child of the program
	send([]byte("rubbish, with no meaning"))
	send(call(typeRawSyscall, exitGroup(), 4, 1))
	send(call(typeRawSyscall, exitGroup(), 5, 1)) // cannot be: it is gone
	if got := <-mine; got.Status != 4 || got.Foreign {
		t.Errorf("got %+v, want status 4", got)
	}
	conn.Close()
	if got, more := <-mine; more {
		t.Errorf("the kernel is gone, and still it says %+v", got)
	}
	l.Forget(os.Getpid())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
	select {
	case got := <-other:
		t.Errorf("another sandbox heard of %+v", got)
	default:
	}
	if _, err := os.Stat(filepath.Join(dir, "exits.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// A kernel that dies says nothing, unless the program's first thread had left.
func TestAKernelThatDies(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent [][]byte
		want []sandbox.Ending
	}{
		{"nothing was said", nil, nil},
		{"a child ended", [][]byte{call(typeRawSyscall, exitGroup(), 9, 2), taskExit(3, 3, 9)}, nil},
		{"another thread left", [][]byte{taskExit(1, 2, 0)}, nil},
		{"the first thread left", [][]byte{taskExit(1, 1, 3<<8)}, []sandbox.Ending{{Status: 3}}},
		{"a signal came from nowhere", [][]byte{taskExit(1, 2, 9), taskExit(1, 1, 9)}, []sandbox.Ending{{Status: 137, Foreign: true}}},
		{"a signal was sent inside", [][]byte{call(typeRawSyscall, senders()[0], 1, 7), taskExit(1, 1, 9)}, []sandbox.Ending{{Status: 137}}},
		{"a fault", [][]byte{taskExit(1, 1, 11)}, []sandbox.Ending{{Status: 139}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l, err := Listen(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			heard := l.Expect(os.Getpid(), 1)
			conn, err := net.Dial("unixpacket", filepath.Join(dir, "exits.sock"))
			if err != nil {
				t.Fatal(err)
			}
			for _, message := range append([][]byte{{8, 1}}, tt.sent...) {
				if _, err := conn.Write(message); err != nil {
					t.Fatal(err)
				}
				if len(message) == 2 { // the greeting is answered
					if _, err := conn.Read(make([]byte, 64)); err != nil {
						t.Fatal(err)
					}
				}
			}
			conn.Close()
			var got []sandbox.Ending
			for e := range heard {
				got = append(got, e)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("heard %v, want %v", got, tt.want)
			}
		})
	}
}

// Where the socket cannot be had, everything else works without it.
func TestNoListener(t *testing.T) {
	var l *Listener
	if l.ConfigFile() != "" || l.Expect(1, 1) != nil || l.Close() != nil {
		t.Error("a nil Listener must do nothing")
	}
	l.Forget(1)
}
