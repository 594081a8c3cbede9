package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/sluice-rl/sluice/topology"
)

// ChooseIntake says how a worker stage takes its records: share or classic. asked is what
// its user wants, empty to have what the topology says: share then becomes classic, with
// a line in the log, where the brokers have no share groups. It waits for the brokers.
//
// A group has one kind, which the brokers hold on to: where the group is of the other
// kind, with members or offsets, it returns ErrConfig. Two kinds of one stage at work
// together would do every record twice.
func (c ClusterConfig) ChooseIntake(ctx context.Context, stage string, asked topology.Intake) (topology.Intake, error) {
	st, err := c.stage(stage)
	if err != nil {
		return "", err
	}
	want := asked
	if want == "" {
		want = st.Intake
	}
	if want != topology.IntakeShare && want != topology.IntakeClassic {
		return "", fmt.Errorf("%w: intake %q: stage %s is a worker, which takes records by share or classic", ErrConfig, want, stage)
	}
	cl, state, err := c.dialWaiting(errLooking, stage, "topics")
	if err != nil {
		return "", err
	}
	defer state.forget()
	defer cl.Close()
	var wait backoff
	for {
		missing, err := c.probe(ctx, cl, c.name(st.Group), want)
		switch {
		case errors.Is(err, ErrConfig):
			return "", err
		case err == nil && missing != nil && asked == topology.IntakeShare:
			return "", missing
		case err == nil && missing != nil:
			c.log().Warn("the brokers have no share groups: taking records by a classic group", "stage", stage, "error", missing)
			return topology.IntakeClassic, nil
		case err == nil:
			return want, nil
		}
		if !wait.wait(ctx, nil) {
			return "", ctx.Err()
		}
	}
}

// probe asks the brokers whether they can do what is wanted: missing says why not. err is
// ErrConfig, or trouble that passes.
func (c ClusterConfig) probe(ctx context.Context, cl *kgo.Client, group string, want topology.Intake) (missing, err error) {
	err = checkShareGroups(ctx, cl)
	none := errors.Is(err, ErrUnsupported)
	switch {
	case none && want == topology.IntakeShare:
		return err, nil
	case none:
		return nil, nil // a classic group then, and no other kind
	case err != nil:
		return nil, err
	}
	return nil, c.checkKind(ctx, kadm.NewClient(cl), group, want)
}

// checkKind returns ErrConfig if a group is there that is of the other kind.
func (c ClusterConfig) checkKind(ctx context.Context, adm *kadm.Client, group string, want topology.Intake) error {
	listed, err := adm.ListGroups(ctx)
	if err != nil {
		return err
	}
	g, there := listed[group]
	if !there || g.GroupType == "" || g.State == "Dead" {
		return nil
	}
	isShare := g.GroupType == "share"
	if isShare == (want == topology.IntakeShare) {
		return nil
	}
	if isShare {
		left, err := adm.DescribeShareGroups(ctx, group)
		if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
			return err
		}
		return fmt.Errorf("%w: group %s takes its records by share (members now: %d), and intake %s was asked for: use --intake share, or stop its members and delete the group (what they had finished will be done again)",
			ErrConfig, group, len(left[group].Members), want)
	}
	return fmt.Errorf("%w: group %s is a %s group (state now: %s), and intake %s was asked for: use --intake classic, or stop its members and delete the group (what they had finished will be done again)",
		ErrConfig, group, g.GroupType, g.State, want)
}
