package kafka

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The times of every group, so that no change of its members holds up records for more
// than ten seconds. (What a killed process of a keyed stage left open in a transaction, or
// of a share group in a lock, comes on top, unless it comes back under its instance.) The session is the shortest that brokers allow by default, and how long
// a killed process keeps its partitions from the others; the heartbeat is how soon a member
// hears that the group changes.
//
// The rebalance time-out is shorter than the session. A report for the maintainers of
// kfake, seen with v0.0.0-20260918054303: a member that waits in JoinGroup is not excused
// from its heartbeats, so that one that waits for longer than its session is removed, and
// its request never answered; and each JoinGroup sets the rebalance's timer anew, so that
// members which come and go within a rebalance time-out of each other put its end off for
// ever. With the client's own times (45 s, 3 s, 60 s) a group of samplers of which some
// were killed stood still for half a minute, and some for good. Wanted: that a waiting
// member's session does not run, and that a rebalance under way keeps its timer.
const (
	sessionTimeout    = 6 * time.Second
	heartbeatInterval = time.Second
	rebalanceTimeout  = 5 * time.Second
	// revokeDeadline is how long work may go on whose partition moves to another member,
	// while the member polls nothing; what is cut off comes back to the next owner. With
	// the commit after it, it fits into rebalanceTimeout.
	revokeDeadline = 3 * time.Second
	commitOnRevoke = rebalanceTimeout - revokeDeadline
)

// leavePatience bounds each thing that is asked of the brokers about a membership: they
// may be away.
const leavePatience = 2 * time.Second

// commitPatience bounds the last commits and acknowledgements of a member that stops.
// The client commits nothing while it joins; a rebalance that nobody holds up is over
// sooner.
const commitPatience = 5 * time.Second

// leave takes a client out of its group, closes it and retires its state. What it worked
// on has ended.
//
// Where the client cannot leave in time, leave does so in its place. A report for the
// maintainers of franz-go, seen with kgo 1.22.3: LeaveGroupContext returns when its
// context ends, but the LeaveGroup request is sent only once the member's JoinGroup has
// been answered, and the brokers hold that answer for up to the rebalance time-out when
// another member is slow or dead. A process that stops in such a rebalance then either
// waits for it, or goes without a word; in that case the others wait for its session or
// rebalance time-out in their turn, here up to a minute. Wanted: that a leave interrupts
// the join under way and sends LeaveGroup with the member id it has, on a connection of
// its own, within the context. Close leaves once more in a goroutine that it does not
// wait for; where a poll counts as under way that goroutine stays until AllowRebalance.
func leave(cl *kgo.Client, st *state, patience time.Duration) {
	defer func() {
		cl.Close()
		// Close leaves once more, in a goroutine of its own for which it does not wait: let
		// it go even if a poll that ended meanwhile counts as one under way.
		cl.AllowRebalance()
	}()
	defer st.retire()
	cl.AllowRebalance()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _ = cl.LeaveGroupContext(ctx); ctx.Err() == nil {
		return
	}
	defer st.abandon()
	// The client leaves only after its JoinGroup was answered, for which the brokers
	// take up to the rebalance time-out if another member is slow or dead. Say it in
	// the client's place, or the others wait for this member in their turn.
	group, _ := cl.OptValue(kgo.ConsumerGroup).(string)
	if member, _ := cl.GroupMetadata(); member != "" {
		_ = removeMembers(cl, group, member) // a member that cannot say so is timed out
	}
}

// evictPredecessors takes out of a group what was left there by processes of this instance that
// were killed: else their partitions, and every rebalance, wait until they are timed
// out. Where it does not work that is what happens. The members are not static ones
// (KIP-345) because those come back without a rebalance: one that was killed after it
// gave partitions up and before it told so would leave them to nobody.
func (c ClusterConfig) evictPredecessors(ctx context.Context, stage, group string) {
	if c.Instance == "" {
		return // every other process of the stage would be taken for one
	}
	cl, st, err := c.dial(stage, "predecessors")
	if err != nil {
		return
	}
	defer cl.Close()
	defer st.forget()
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	group = c.name(group)
	groups, err := kadm.NewClient(cl).DescribeGroups(ctx, group)
	if err != nil {
		c.log().Debug("cannot see the group's members", "group", group, "error", err)
		return
	}
	var left []string
	for _, m := range groups[group].Members {
		if m.ClientID == c.clientID(stage) {
			left = append(left, m.MemberID)
		}
	}
	if len(left) == 0 {
		return
	}
	if err := removeMembers(cl, group, left...); err != nil {
		c.log().Debug("cannot take earlier members of this instance out of the group", "group", group, "error", err)
		return
	}
	c.log().Info("took earlier members of this instance out of the group", "group", group, "members", len(left))
}

// removeMembers takes members out of a group.
func removeMembers(cl *kgo.Client, group string, members ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group = group
	for _, id := range members {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID = id
		req.Members = append(req.Members, m)
	}
	_, err := req.RequestWith(ctx, cl)
	return err
}
