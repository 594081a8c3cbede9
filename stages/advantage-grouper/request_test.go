package main

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/internal/testkit/machinetest"
)

func TestGroupsAreClosedByHand(t *testing.T) {
	p := newPartition(t)
	p.prompt(1, 0, 2)
	p.prompt(1, 1, 2)
	p.prompt(2, 0, 2)
	p.member(1, 1, 2, 0, 10, 1)
	one := &sluicev1.CloseRequest{RunId: "run", Step: 1, Slot: proto.Uint32(0), Reason: "its prompt kills the server"}
	p.must(p.Broadcast("close-requests", one))
	p.must(p.Broadcast("close-requests", one))
	p.expect("member run.0/1/1/0~10", "closed run.0/1/0 dropped operator: missing missing")

	p.must(p.Broadcast("close-requests", &sluicev1.CloseRequest{RunId: "run", Step: 1, Reason: "enough"}))
	p.must(p.Restart()) // the requests are told again
	p.prompt(1, 2, 2)   // its prompt comes after the request
	p.expect("member run.0/1/1/0~10", "closed run.0/1/0 dropped operator: missing missing",
		"closed run.0/1/1 dropped operator: short_group missing", "closed run.0/1/2 dropped operator: missing missing")
	closed := machinetest.Bodies[*sluicev1.GroupClosed](p.Partition, "grouped")
	if closed[0].GetDetail() != "its prompt kills the server" || closed[1].GetDetail() != "enough" {
		t.Errorf("details %q and %q, want what the operator said", closed[0].GetDetail(), closed[1].GetDetail())
	}
}

// With enough graded members a group closed by hand is used, as at its deadline.
func TestAGroupClosedByHandIsUsedIfItCan(t *testing.T) {
	p := newPartition(t)
	p.prompt(1, 0, 3)
	p.member(1, 0, 3, 0, 10, 1)
	p.member(1, 0, 3, 1, 11, -1)
	p.must(p.Broadcast("close-requests", &sluicev1.CloseRequest{RunId: "run", Step: 1, Reason: "straggler"}))
	p.expect("member run.0/1/0/0~10", "member run.0/1/0/1~11", "closed run.0/1/0 used operator: used used missing")
}
