package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluice-rl/sluice/schemas/codec"
	"github.com/sluice-rl/sluice/schemas/identity"
	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/topology"
	"github.com/sluice-rl/sluice/topology/process"
	"github.com/sluice-rl/sluice/topology/sluice/presence"
	"github.com/sluice-rl/sluice/topology/sluice/terminal"
)

const closeAbout = `Close a group, or every open group of a step, by hand, with the members it has: it is
used if they are enough, as at its deadline, and dropped otherwise. Why it was closed
stays in SQL (groups.reason is "operator", groups.detail what --why says).

advantage-grouper closes what it knows. Slots that it does not know, because their prompts
are gone, are named after --timeout; --force closes them as dropped in its place.

A step is RUN/STEP and a group RUN/STEP/SLOT, or RUN.INCARNATION/STEP/SLOT, as sluice
status and the logs have them.`

// errStillOpen: not all that was to be closed is.
var errStillOpen = errors.New("still open")

// closeOptions is what sluice close is told.
type closeOptions struct {
	kafka
	group, step, why string
	force            bool

	place identity.Group
	whole bool
}

func closeCommand() process.Command {
	var c closeOptions
	return process.Command{
		Name: "close", Short: "Close a group or a step by hand", About: closeAbout,
		Flags: func(flags *process.Flags) {
			f := flags.Group("Closing")
			f.StringVar(&c.group, "group", "", "the group, RUN/STEP/SLOT")
			f.StringVar(&c.step, "step", "", "the step, RUN/STEP: all its open groups")
			f.StringVar(&c.why, "why", "", "why, in a few words for those who read it later (required)")
			f.BoolVar(&c.force, "force", false, "close slots that advantage-grouper does not know, as dropped")
			c.register(flags, time.Minute, "how long to wait until they are closed")
		},
		Check: c.check,
		Run:   c.run,
	}
}

func (c *closeOptions) check() error {
	if (c.group == "") == (c.step == "") {
		return errors.New("want --group RUN/STEP/SLOT or --step RUN/STEP")
	}
	if c.why == "" {
		return errors.New("--why is missing: say why it is closed by hand")
	}
	text := c.group
	if c.whole = c.step != ""; c.whole {
		text = c.step + "/0"
	}
	run, rest, _ := strings.Cut(text, "/")
	if !strings.Contains(run, ".") {
		run += ".0"
	}
	p, err := identity.ParsePlace(run + "/" + rest + "/0")
	if err != nil {
		return fmt.Errorf("%q names no group or step: want RUN/STEP/SLOT or RUN/STEP: %w", c.group+c.step, err)
	}
	c.place = p.Group
	return c.Check()
}

func (c *closeOptions) run(ctx context.Context, l *process.Life) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	defer cl.Close()
	request := &sluicev1.CloseRequest{
		RunId: c.place.RunID, Incarnation: c.place.Incarnation, Step: c.place.Step, Reason: c.why, RequestedAt: timestamppb.New(time.Now()),
	}
	if !c.whole {
		request.Slot = proto.Uint32(c.place.Slot)
	}
	err = c.ask(ctx, func(ctx context.Context) error { return c.put(ctx, cl, "close-requests", request) })
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	fmt.Fprintf(l.Stdout, "asked for %s; waiting until it is closed\n", terminal.Escape(codec.Key(request)))
	waits, err := c.await(ctx)
	if err == nil && len(waits.slots) > 0 && c.force {
		for _, slot := range waits.slots {
			if err := c.ask(ctx, func(ctx context.Context) error { return c.put(ctx, cl, "grouped", c.dropped(slot, waits.groups)) }); err != nil {
				return fmt.Errorf("close: %w", err)
			}
			fmt.Fprintf(l.Stdout, "slot %d is closed as dropped\n", slot)
		}
		waits, err = c.await(ctx)
	}
	switch {
	case err != nil:
		return fmt.Errorf("close: %w", err)
	case len(waits.slots) > 0 && !c.force:
		return fmt.Errorf("close: %w: slots %v: advantage-grouper does not know them, or is not at work (sluice status); --force closes them as dropped", errStillOpen, waits.slots)
	case len(waits.slots) > 0:
		return fmt.Errorf("close: %w: slots %v: there may be more of them, say it again", errStillOpen, waits.slots)
	}
	fmt.Fprintln(l.Stdout, "closed")
	return nil
}

// openSlots is what ppo-batcher still waits for of what was asked for: the first few slots,
// and how many groups the step has.
type openSlots struct {
	slots  []uint32
	groups uint32
}

// await waits, for at most --timeout, until ppo-batcher has spoken again and counts all of
// it as closed.
func (c *closeOptions) await(ctx context.Context) (openSlots, error) {
	processes, err := presence.NewReader(c.Options(), topology.Name(c.Namespace, topology.StatusTopic))
	if err != nil {
		return openSlots{}, err
	}
	defer processes.Close()
	var open openSlots
	before := map[string]time.Time{}
	for looks, spoke, deadline := 0, false, time.Now().Add(c.timeout); ; looks++ {
		var all []presence.Process
		err := c.ask(ctx, func(ctx context.Context) (err error) { all, err = processes.Read(ctx, time.Now()); return err })
		if err != nil {
			return open, err
		}
		for _, p := range all {
			if looks > 0 && p.GetStage() == "ppo-batcher" && !p.Heard.Equal(before[p.Name()]) {
				spoke = true
			}
			before[p.Name()] = p.Heard
		}
		if open = c.openOf(all); spoke && len(open.slots) == 0 {
			return open, nil
		}
		if time.Now().After(deadline) {
			if !spoke {
				return open, fmt.Errorf("%w for all that is known: ppo-batcher has said nothing in %s (sluice status)", errStillOpen, c.timeout)
			}
			return open, nil
		}
		select {
		case <-ctx.Done():
			return open, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// openOf picks from what the processes say the slots that were to be closed.
func (c *closeOptions) openOf(all []presence.Process) (open openSlots) {
	for _, p := range all {
		for _, s := range p.GetSteps() {
			if s.GetRunId() != c.place.RunID || s.GetIncarnation() != c.place.Incarnation || s.GetStep() != c.place.Step || s.GetBatched() {
				continue
			}
			open.groups = s.GetGroups()
			for _, slot := range s.GetOpenSlots() {
				if c.whole || slot == c.place.Slot {
					open.slots = append(open.slots, slot)
				}
			}
		}
	}
	return open
}

// dropped is the closing of a group that nobody knows.
func (c *closeOptions) dropped(slot, groups uint32) *sluicev1.GroupClosed {
	return &sluicev1.GroupClosed{
		Group: &sluicev1.GroupPlace{RunId: c.place.RunID, Incarnation: c.place.Incarnation, Step: c.place.Step, Slot: slot},
		Mode:  sluicev1.Mode_MODE_TRAIN, GroupsInStep: groups, Closing: sluicev1.Closing_CLOSING_DROPPED,
		Reason: "operator", Detail: c.why, ClosedAt: timestamppb.New(time.Now()),
	}
}

func (c *closeOptions) put(ctx context.Context, cl *kgo.Client, topic string, m proto.Message) error {
	rec, err := codec.Encode(m)
	if err != nil {
		return err
	}
	r := &kgo.Record{Topic: topology.Name(c.Namespace, topic), Key: rec.Key, Value: rec.Value}
	for _, h := range rec.Headers {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return cl.ProduceSync(ctx, r).FirstErr()
}
