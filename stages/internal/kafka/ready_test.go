package kafka

import (
	"errors"
	"testing"

	"github.com/sluice-rl/sluice/topology"
)

// A connection alone makes no consumer ready: it has to join its group, or to read what
// is there, first. Otherwise a stage would say that it is ready and take it back.
func TestConnectedIsNotReady(t *testing.T) {
	top, err := topology.Default()
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	cluster := ClusterConfig{
		Brokers: []string{"127.0.0.1:1"}, Topology: top,
		Ready: func(_ string, err error) { told = append(told, err) },
	}
	cl, st, err := cluster.dialWaiting(errJoining, "sampler", "classic")
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	st.setConn(nil)
	for _, err := range told {
		if err == nil {
			t.Fatal("reported ready on being connected, before it joined")
		}
	}
	if last := told[len(told)-1]; !errors.Is(last, errJoining) {
		t.Errorf("connected: told %v, want %v", last, errJoining)
	}
	st.setWork(nil)
	if last := told[len(told)-1]; last != nil {
		t.Errorf("joined: told %v, want nothing to wait for", last)
	}
}
