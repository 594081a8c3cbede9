package step

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/schemas/sluicev1"
)

// errCorrection says what a correction is written as.
var errCorrection = errors.New("want none, truncate:MOST, mask:LOW:HIGH, sequence-truncate:MOST or sequence-mask:LOW:HIGH, with 0 <= LOW < 1 < HIGH and 0 < MOST")

// correctionFlag is a correction as a flag.
type correctionFlag struct{ to **sluicev1.Correction }

func (correctionFlag) Type() string {
	return "none|truncate:MOST|mask:LOW:HIGH|sequence-truncate:MOST|sequence-mask:LOW:HIGH"
}

func (f correctionFlag) String() string {
	if f.to == nil || *f.to == nil {
		return "none"
	}
	c, by := *f.to, ""
	if c.GetBySequence() {
		by = "sequence-"
	}
	if c.GetKind() == sluicev1.CorrectionKind_CORRECTION_KIND_MASK {
		return fmt.Sprintf("%smask:%g:%g", by, c.GetLow(), c.GetHigh())
	}
	return fmt.Sprintf("%struncate:%g", by, c.GetHigh())
}

func (f correctionFlag) Set(text string) error {
	if text == "none" {
		*f.to = nil
		return nil
	}
	kind, bounds, _ := strings.Cut(text, ":")
	c := &sluicev1.Correction{}
	kind, c.BySequence = strings.CutPrefix(kind, "sequence-")
	numbers, err := floatsOf(bounds)
	switch {
	case err != nil:
		return err
	case kind == "truncate" && len(numbers) == 1:
		c.Kind, c.High = sluicev1.CorrectionKind_CORRECTION_KIND_TRUNCATE, numbers[0]
	case kind == "mask" && len(numbers) == 2:
		c.Kind, c.Low, c.High = sluicev1.CorrectionKind_CORRECTION_KIND_MASK, numbers[0], numbers[1]
	default:
		return errCorrection
	}
	if err := checkCorrection(c); err != nil {
		return err
	}
	*f.to = c
	return nil
}

func floatsOf(text string) ([]float64, error) {
	var all []float64
	for _, word := range strings.Split(text, ":") {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, errCorrection
		}
		all = append(all, v)
	}
	return all, nil
}

// checkCorrection says what is wrong with a correction; there may be none.
func checkCorrection(c *sluicev1.Correction) error {
	if c == nil {
		return nil
	}
	ok := !math.IsInf(c.GetHigh(), 0)
	switch c.GetKind() {
	case sluicev1.CorrectionKind_CORRECTION_KIND_TRUNCATE:
		ok = ok && c.GetHigh() > 0 && c.GetLow() == 0
	case sluicev1.CorrectionKind_CORRECTION_KIND_MASK:
		ok = ok && c.GetLow() >= 0 && c.GetLow() < 1 && c.GetHigh() > 1
	default:
		ok = false
	}
	if !ok {
		return errCorrection
	}
	return nil
}
