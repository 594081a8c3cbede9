package tokens

import "github.com/sluice-rl/sluice/schemas/sluicev1"

// Versions makes spans of one policy version per token.
func Versions(perToken ...uint32) []*sluicev1.VersionSpan {
	var spans []*sluicev1.VersionSpan
	for _, v := range perToken {
		spans = AppendVersion(spans, v, 1)
	}
	return spans
}

// AppendVersion says of n more tokens that a version sampled them.
func AppendVersion(spans []*sluicev1.VersionSpan, version uint32, n int) []*sluicev1.VersionSpan {
	if n == 0 {
		return spans
	}
	if last := len(spans) - 1; last >= 0 && spans[last].GetVersion() == version {
		spans[last].Count += uint32(n)
		return spans
	}
	return append(spans, &sluicev1.VersionSpan{Version: version, Count: uint32(n)})
}

// ReadVersions is one policy version per token.
func ReadVersions(spans []*sluicev1.VersionSpan) []uint32 {
	versions := make([]uint32, 0, CountVersions(spans))
	for _, s := range spans {
		for range s.GetCount() {
			versions = append(versions, s.GetVersion())
		}
	}
	return versions
}

// CountVersions is for how many tokens spans speak.
func CountVersions(spans []*sluicev1.VersionSpan) int {
	n := 0
	for _, s := range spans {
		n += int(s.GetCount())
	}
	return n
}

// VersionRange is the oldest and the newest policy version of spans; false of none.
func VersionRange(spans []*sluicev1.VersionSpan) (oldest, newest uint32, ok bool) {
	for i, s := range spans {
		if v := s.GetVersion(); i == 0 {
			oldest, newest = v, v
		} else {
			oldest, newest = min(oldest, v), max(newest, v)
		}
	}
	return oldest, newest, len(spans) > 0
}
