package codec

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// scoredTrajectory is the number of Scored.trajectory.
const scoredTrajectory = 1

// TrajectoryBytes is the encoded trajectory within the value of a Trajectory or Scored
// record, nil if there is not exactly one.
func TrajectoryBytes(typeName string, value []byte) []byte {
	switch typeName {
	case "Trajectory":
		return value
	case "Scored":
	default:
		return nil
	}
	var found []byte
	for len(value) > 0 {
		number, kind, n := protowire.ConsumeField(value)
		if n < 0 {
			return nil
		}
		if number == scoredTrajectory {
			_, _, tag := protowire.ConsumeTag(value)
			b, m := protowire.ConsumeBytes(value[tag:])
			if m < 0 || kind != protowire.BytesType || found != nil {
				return nil
			}
			found = b
		}
		value = value[n:]
	}
	return found
}

// EncodeScored is Encode of a Scored whose trajectory was decoded, and so validated,
// from these bytes: they are taken as they are, with fields that this version does not
// know, and not encoded again.
func EncodeScored(s *sluicev1.Scored, trajectory []byte) (Record, error) {
	bare := &sluicev1.Scored{
		Graded: s.GetGraded(), UngradedReason: s.GetUngradedReason(), Reward: s.GetReward(), Correct: s.GetCorrect(),
		ValidFormat: s.GetValidFormat(), Answer: s.GetAnswer(), Verdict: s.GetVerdict(), Scores: s.GetScores(), ScoredAt: s.GetScoredAt(),
	}
	if err := checkScore(s); err != nil {
		return Record{}, fmt.Errorf("encode Scored: %w: %w", ErrInvalid, err)
	}
	rec, err := Rebuild(bare, SchemaVersion)
	if err != nil {
		return Record{}, err
	}
	value := make([]byte, 0, len(trajectory)+len(rec.Value)+10)
	value = protowire.AppendTag(value, scoredTrajectory, protowire.BytesType)
	value = protowire.AppendBytes(value, trajectory)
	rec.Value = append(value, rec.Value...)
	rec.Key = []byte(Key(s))
	origin, err := marshal(OriginOf(s))
	if err != nil {
		return Record{}, fmt.Errorf("encode origin of Scored: %w", err)
	}
	rec.Headers = append(rec.Headers[:2], Header{HeaderOrigin, origin})
	return rec, nil
}
