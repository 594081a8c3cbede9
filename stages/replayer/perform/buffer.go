package perform

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
	"github.com/sluice-rl/sluice/stages/replayer/replay"
)

// buffer keeps, for each trajectory, what its group and its batch need: the new outcome in
// memory, and in a file, behind their lengths, Scored messages: whole where the
// trajectory may be trained on, otherwise no more than the outcome.
type buffer struct {
	file  *os.File
	w     *bufio.Writer
	bytes int64
	// flushed is how much of bytes can be read back.
	flushed int64
	members map[replay.Member]entry
}

type entry struct {
	replay.Outcome
	at   int64
	size int32
}

// openBuffer opens the buffer as it was when it had so many bytes.
func openBuffer(path string, size int64) (*buffer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	s := &buffer{file: file, members: map[replay.Member]entry{}}
	if err := s.load(size); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	s.w = bufio.NewWriterSize(file, 1<<20)
	return s, nil
}

func (s *buffer) load(size int64) error {
	if info, err := s.file.Stat(); err != nil {
		return err
	} else if info.Size() < size {
		return fmt.Errorf("%d bytes, the checkpoint says %d: it was cut", info.Size(), size)
	}
	if err := s.file.Truncate(size); err != nil {
		return err
	}
	r := bufio.NewReaderSize(s.file, 1<<20)
	for s.bytes < size {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		b := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		m := &sluicev1.Scored{}
		if err := proto.Unmarshal(b, m); err != nil {
			return err
		}
		s.note(replay.MemberOf(m.GetTrajectory()), replay.OutcomeOf(m), len(b))
	}
	s.flushed = size
	_, err := s.file.Seek(size, io.SeekStart)
	return err
}

func (s *buffer) note(m replay.Member, o replay.Outcome, size int) {
	s.members[m] = entry{o, s.bytes + 4, int32(size)}
	s.bytes += 4 + int64(size)
}

// buffered is what the buffer keeps of a score that is not trained on.
func buffered(s *sluicev1.Scored) ([]byte, error) {
	t := s.GetTrajectory()
	return proto.Marshal(&sluicev1.Scored{
		Trajectory: &sluicev1.Trajectory{
			Prompt:      &sluicev1.Prompt{Group: t.GetPrompt().GetGroup()},
			SampleIndex: t.GetSampleIndex(), Copy: t.GetCopy(), EndReason: t.GetEndReason(),
		},
		Graded: s.GetGraded(), Reward: s.GetReward(), Correct: s.GetCorrect(),
	})
}

func (s *buffer) add(m replay.Member, o replay.Outcome, kept []byte) error {
	if _, err := s.w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(kept)))); err != nil {
		return err
	}
	if _, err := s.w.Write(kept); err != nil {
		return err
	}
	s.note(m, o, len(kept))
	return nil
}

// sync makes durable what was added.
func (s *buffer) sync() error {
	if s.flushed == s.bytes {
		return nil
	}
	if err := s.w.Flush(); err != nil {
		return err
	}
	s.flushed = s.bytes
	return s.file.Sync()
}

// outcome is a member's new outcome.
func (s *buffer) outcome(m replay.Member) (replay.Outcome, bool) {
	e, ok := s.members[m]
	return e.Outcome, ok
}

// trajectory reads a member's tokens back. It may be called from several goroutines once
// nothing is added any more.
func (s *buffer) trajectory(m replay.Member) (*sluicev1.Trajectory, error) {
	e, ok := s.members[m]
	if !ok {
		return nil, replay.ErrIncomplete
	}
	b := make([]byte, e.size)
	if _, err := s.file.ReadAt(b, e.at); err != nil {
		return nil, err
	}
	kept := &sluicev1.Scored{}
	if err := proto.Unmarshal(b, kept); err != nil {
		return nil, err
	}
	return kept.GetTrajectory(), nil
}

func (s *buffer) close() error { return s.file.Close() }
