package exitcall

import (
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// report is a message as gVisor's kernel writes it.
func report(kind uint16, number int, arg, group uint64) []byte {
	out := make([]byte, headerBytes)
	binary.LittleEndian.PutUint16(out, headerBytes)
	binary.LittleEndian.PutUint16(out[2:], kind)
	context := protowire.AppendVarint(protowire.AppendTag(nil, fieldGroup, protowire.VarintType), group)
	out = protowire.AppendBytes(protowire.AppendTag(out, fieldContext, protowire.BytesType), context)
	out = protowire.AppendVarint(protowire.AppendTag(out, fieldNumber, protowire.VarintType), uint64(number))
	return protowire.AppendVarint(protowire.AppendTag(out, fieldArg1, protowire.VarintType), arg)
}

func TestDecode(t *testing.T) {
	whole := report(typeRawSyscall, exitGroup(), 3, 1)
	for _, tt := range []struct {
		name          string
		message       []byte
		group, status int
		ok            bool
	}{
		{"an exit", whole, 1, 3, true},
		{"a status is one byte", report(typeRawSyscall, exitGroup(), 0x1ff, 1), 1, 255, true},
		{"another process", report(typeRawSyscall, exitGroup(), 0, 7), 7, 0, true},
		{"another call", report(typeRawSyscall, 1, 0, 1), 0, 0, false},
		{"another message", report(5, exitGroup(), 0, 1), 0, 0, false},
		{"nothing", nil, 0, 0, false},
		{"cut short", whole[:len(whole)-1], 0, 0, false},
		{"a header that lies", append([]byte{0xff, 0xff}, whole[2:]...), 0, 0, false},
	} {
		group, status, ok := decode(tt.message)
		if ok != tt.ok || ok && (group != tt.group || status != tt.status) {
			t.Errorf("%s: got process %d, status %d, %v; want %d, %d, %v", tt.name, group, status, ok, tt.group, tt.status, tt.ok)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(report(typeRawSyscall, exitGroup(), 3, 1))
	f.Add([]byte{8, 0, 6, 0, 0, 0, 0, 0, 0x0a, 0xff})
	f.Fuzz(func(t *testing.T, message []byte) {
		if _, status, ok := decode(message); ok && (status < 0 || status > 255) {
			t.Errorf("status %d", status)
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
	mine, other := l.Expect(os.Getpid()), l.Expect(1)
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
	send(report(typeRawSyscall, exitGroup(), 9, 2)) // a child of the program
	send([]byte("rubbish, with no meaning"))
	send(report(typeRawSyscall, exitGroup(), 4, 1))
	send(report(typeRawSyscall, exitGroup(), 5, 1)) // cannot be: it is gone
	if got := <-mine; got != 4 {
		t.Errorf("status %d, want 4", got)
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
		t.Errorf("another sandbox heard of status %d", got)
	default:
	}
	if _, err := os.Stat(filepath.Join(dir, "exits.sock")); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// Where the socket cannot be had, everything else works without it.
func TestNoListener(t *testing.T) {
	var l *Listener
	if l.ConfigFile() != "" || l.Expect(1) != nil || l.Close() != nil {
		t.Error("a nil Listener must do nothing")
	}
	l.Forget(1)
}
