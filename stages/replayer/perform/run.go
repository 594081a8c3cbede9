package perform

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sluice-rl/sluice/schemas/archive"
	"github.com/sluice-rl/sluice/stages/replayer/replay"
)

// Run performs a replay, from its checkpoint if there is one. Where ctx ends first it
// leaves a checkpoint and returns ctx's error: the same call goes on from there.
func Run(ctx context.Context, cfg Config) (Summary, error) {
	if err := cfg.prepare(); err != nil {
		return Summary{}, err
	}
	if err := os.MkdirAll(cfg.State, 0o755); err != nil {
		return Summary{}, err
	}
	release, err := lock(ctx, cfg.State)
	if err != nil {
		return Summary{}, err
	}
	defer release()
	r := &run{Config: cfg}
	if err := r.start(ctx); err != nil {
		return Summary{}, err
	}
	if r.cp.Phase == phaseDone {
		if err := r.Sink.Holds(ctx, r.Until.topics(), r.cp.Mark); err != nil {
			return r.cp.Summary, err
		}
		return r.finished()
	}
	defer r.buffer.close()
	err = r.work(ctx)
	if err == nil {
		return r.finished()
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && !r.torn {
		// What was committed is whole: keep it, if that does not take long.
		if serr := r.save(ctx); serr != nil {
			r.Log.Warn("the last checkpoint is not of the last moment", "error", serr)
		}
	}
	return r.cp.Summary, err
}

// lastSave bounds how long an interrupted replay tries to keep what it did since its
// last checkpoint.
const lastSave = 10 * time.Second

func (r *run) finished() (Summary, error) {
	err := r.clean()
	if s := r.cp.Summary; err == nil && s.Scored == 0 {
		err = fmt.Errorf("%w: of %d trajectories that were read %d were not selected and %d not readable", ErrNothing, s.Read, s.NotMeant, s.Unreadable)
	}
	return r.cp.Summary, err
}

// clean removes what only a replay under way needs.
func (r *run) clean() error {
	err := os.Remove(filepath.Join(r.State, bufferFile))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, r.Sink.Clean())
}

// run is a replay under way.
type run struct {
	Config
	cp     *checkpoint
	plan   *replay.Plan
	buffer *buffer
	saved  time.Time
	told   time.Time
	// torn: a write failed, so that what the sink has is not what cp says.
	torn bool
}

func (r *run) start(ctx context.Context) error {
	var err error
	if r.cp, err = loadCheckpoint(r.State, r.ID, r.Fingerprint); err != nil {
		return err
	}
	fresh := r.cp == nil
	if fresh {
		r.cp = &checkpoint{Version: checkpointVersion, ID: r.ID, Fingerprint: r.Fingerprint, Phase: phaseScoring, Bounds: map[string]Bounds{}, Summary: Summary{ID: r.ID}}
		if err := r.bound(ctx); err != nil {
			return err
		}
	}
	if r.cp.Phase == phaseDone {
		return nil
	}
	if err := r.Sink.Resume(ctx, r.Until.topics(), r.cp.Mark); err != nil {
		return err
	}
	if r.buffer, err = openBuffer(filepath.Join(r.State, bufferFile), r.cp.Buffer); err != nil {
		return err
	}
	r.plan = replay.NewPlan()
	if err := r.readPlan(ctx); err != nil {
		return errors.Join(err, r.buffer.close())
	}
	if fresh {
		// Before anything is written: what is written later can then be told from
		// what others wrote.
		if err := r.save(ctx); err != nil {
			return errors.Join(err, r.buffer.close())
		}
	}
	return nil
}

// bound fixes what is read.
func (r *run) bound(ctx context.Context) error {
	b, err := r.Source.Bounds(ctx, r.Trajectories, r.Select)
	if err != nil {
		return err
	}
	if b.Absent {
		return fmt.Errorf("%w: there is no topic %s to replay", ErrNothing, r.Trajectories)
	}
	r.cp.Bounds[r.Trajectories] = b
	for _, topic := range r.planTopics() {
		if b, err = r.Source.Bounds(ctx, topic, r.since()); err != nil {
			return err
		}
		if b.Absent && topic == topicGrouped {
			return fmt.Errorf("%w: there is no topic %s, which says what became of the groups: stop at scores", ErrNothing, topic)
		}
		r.cp.Bounds[topic] = b
	}
	return nil
}

// planTopics hold closings, and batches where they matter.
func (r *run) planTopics() []string {
	switch r.Until {
	case Groups:
		return []string{topicGrouped}
	case Batches:
		return []string{topicGrouped, topicBatches}
	}
	return nil
}

// since selects closings and batches. They come after what they close: offsets of another
// topic say nothing of them, the time at which to begin does.
func (r *run) since() archive.Selection { return archive.Selection{Since: r.Select.Since} }

func (r *run) readPlan(ctx context.Context) error {
	since := r.since()
	for _, topic := range r.planTopics() {
		if r.cp.Bounds[topic].Absent {
			continue
		}
		err := r.Source.Read(ctx, topic, r.cp.Bounds[topic], Position{}, func(b Batch) error {
			records, err := b.Records("GroupClosed", "StepBatch")
			for _, rec := range records {
				if err == nil && since.Placed(rec) && r.Select.Said(rec) {
					err = r.addToPlan(rec)
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if r.Until != Scores && r.plan.Groups() == 0 {
		return fmt.Errorf("%w: %s says of no group that is meant what became of it: stop at scores, or select others", ErrNothing, topicGrouped)
	}
	return nil
}

func (r *run) addToPlan(rec archive.Record) error {
	m, err := rec.Decode()
	if err != nil {
		r.Log.Warn("record left out", "topic", rec.Topic, "partition", rec.Partition, "offset", rec.Offset, "error", err)
		return nil
	}
	return r.plan.Add(m)
}

func (r *run) work(ctx context.Context) error {
	if r.cp.Phase == phaseScoring {
		if err := r.score(ctx); err != nil {
			return err
		}
		r.cp.Phase = phaseBatching
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	if r.Until != Scores {
		if err := r.batch(ctx); err != nil {
			return err
		}
	}
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := r.at("finish"); err != nil {
		return err
	}
	err := r.Sink.Finish(ctx, r.cp.Summary, func(done, total int64) {
		p := Progress{Phase: phaseWriting, Done: done, Share: float64(done) / float64(total), Ended: done == total}
		r.tell(p)
	})
	if err != nil {
		return err
	}
	if err := r.at("finished"); err != nil {
		return err
	}
	r.cp.Phase, r.cp.Buffer = phaseDone, 0
	return r.cp.save(r.State)
}

// write gives the sink what is part of the checkpoint from now on.
func (r *run) write(ctx context.Context, items []Item) error {
	err := r.Sink.Write(ctx, items)
	r.torn = err != nil
	return err
}

// committed is called after each commit: it says how far the replay is and keeps a
// checkpoint now and then.
func (r *run) committed(ctx context.Context, p Progress) error {
	if err := r.at("committed"); err != nil {
		return err
	}
	r.tell(p)
	return r.idle(ctx)
}

func (r *run) tell(p Progress) {
	if now := time.Now(); now.Sub(r.told) >= time.Second || p.Ended {
		r.told = now
		r.Progress(p)
	}
}

// idle keeps a checkpoint if it is time for one.
func (r *run) idle(ctx context.Context) error {
	if time.Since(r.saved) < r.Every {
		return nil
	}
	return r.save(ctx)
}

// save makes a checkpoint of what was committed.
func (r *run) save(ctx context.Context) error {
	if err := r.at("before sync"); err != nil {
		return err
	}
	ctx, stop := lingering(ctx, lastSave)
	defer stop()
	mark, err := r.Sink.Sync(ctx)
	if err != nil {
		r.torn = true
		return err
	}
	if err := r.buffer.sync(); err != nil {
		return err
	}
	r.cp.Mark, r.cp.Buffer = mark, r.buffer.bytes
	if err := r.at("synced"); err != nil {
		return err
	}
	if err := r.cp.save(r.State); err != nil {
		return err
	}
	r.saved = time.Now()
	return r.at("saved")
}

// Summary counts what a replay did.
type Summary struct {
	ID string `json:"id"`
	// Read are records of the trajectories' topic; those left out were not of the
	// selection, not readable, or copies that came before.
	Read       int64 `json:"read"`
	NotMeant   int64 `json:"not_meant"`
	Unreadable int64 `json:"unreadable"`
	Repeated   int64 `json:"repeated"`
	Scored     int64 `json:"scored"`
	Graded     int64 `json:"graded"`
	// RewardFailed are those on which the reward that decides failed: ungraded.
	RewardFailed int64 `json:"reward_failed,omitempty"`
	// Beside the recorded score, where there is one.
	RewardChanged int64 `json:"reward_changed"`
	NowCorrect    int64 `json:"now_correct"`
	NowWrong      int64 `json:"now_wrong"`

	Used       int64 `json:"groups_used"`
	Degenerate int64 `json:"groups_degenerate"`
	Dropped    int64 `json:"groups_dropped"`
	// IncompleteGroups lack a member's record, IncompleteSteps a group.
	IncompleteGroups int64 `json:"groups_incomplete"`
	IncompleteSteps  int64 `json:"steps_incomplete"`
	Steps            int64 `json:"steps_batched"`
	MicroBatches     int64 `json:"micro_batches"`
	// Examples name a few of what was left out, and why.
	Examples []string `json:"examples,omitempty"`
}

// maxExamples bounds the list.
const maxExamples = 10

func (s *Summary) example(text string) {
	if len(s.Examples) < maxExamples && !slices.Contains(s.Examples, text) {
		s.Examples = append(s.Examples, text)
	}
}
