package reading

import (
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// remarkOf makes a remark of the words in front of a quantity and behind it.
func remarkOf(before, after []string) expr.Remark {
	var r expr.Remark
	for place, list := range [][]string{before, after} {
		last := len(list) - 1 // the last word that is no filler
		for last > 0 && ClassOf(strings.ToLower(list[last])) == Filler {
			last--
		}
		for i, w := range list {
			lower := strings.ToLower(w)
			subject := w != lower && place == 0 && i+1 < len(list) && possessing[list[i+1]]
			w = lower
			list[i] = lower
			class := ClassOf(w)
			switch {
			case class == Filler, class == unknownWord && subject:
				continue
			case class == quantifier:
				if i+1 < len(list) && nounFollows(list[i+1:]) {
					class = adjective
				}
			}
			alone := place == 0 && i == len(list)-1 && (w == "square" || w == "times" || w == "dozen") || place == 1 && bounds[w]
			if class == noun && operations[w] || alone || class == Glue && place == 0 && i == last && (w != "of" || i == 0 || !Measures[list[i-1]]) {
				class = unknownWord
			}
			if (powers[w] > 0 || powerWords[w] != "") && (i > 0 && singular(list[i-1]) == "unit" || i+1 < len(list) && singular(list[i+1]) == "unit") {
				continue // "9 units squared"
			}
			text := w
			switch {
			case monthNames[w] != "":
				text = monthNames[w]
			case class == noun || class == adjective:
				text = singular(w)
			case class == unknownWord && place == 0 && !months[w] && opposites[w] == "":
				text = w + " …" // "below 7" is not "7 below"
			}
			r = append(r, expr.RemarkWord{Text: text, Free: class.free(), Denies: class == Denial})
		}
	}
	return r
}

// possessing are the verbs behind a name that only tell who has what is counted:
// "John has 7 apples".
var possessing = map[string]bool{"has": true, "have": true, "had": true, "gets": true, "got": true, "needs": true, "earns": true, "earned": true, "pays": true, "paid": true, "makes": true, "made": true, "spends": true, "spent": true, "takes": true, "took": true, "sold": true, "sells": true, "bought": true, "buys": true}

// bounds are words that bound the number in front of them: "7 maximum".
var bounds = map[string]bool{"maximum": true, "minimum": true, "maximal": true, "minimal": true, "least": true, "greatest": true, "largest": true, "smallest": true, "best": true, "worst": true, "short": true}

// nounFollows says whether a noun comes, behind no more than adjectives.
func nounFollows(list []string) bool {
	for _, w := range list {
		switch ClassOf(w) {
		case noun:
			return true
		case adjective, quantifier, Filler:
		default:
			return false
		}
	}
	return false
}

// SayingOf is the words of an answer in the form in which they are compared.
func SayingOf(text string) []string {
	all := strings.Fields(strings.ToLower(text))
	var kept []string
	for _, w := range all {
		if class := ClassOf(w); class == Filler && w != "yes" {
			continue
		}
		if m := monthNames[w]; m != "" {
			w = m
		}
		kept = append(kept, singular(w))
	}
	if len(kept) == 0 {
		return all
	}
	if len(kept) > 1 && kept[0] == "no" && kept[1] == "real" { // "no real solution"
		kept = append(kept[:1], kept[2:]...)
	}
	return kept
}
