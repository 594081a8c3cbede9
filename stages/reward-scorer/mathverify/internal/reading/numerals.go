package reading

import (
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// smallNumerals are the words for numbers below a hundred.
var smallNumerals = map[string]int64{
	"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
	"eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
	"twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

// multiples are words that multiply the number before them.
var multiples = map[string]int64{
	"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "trillion": 1_000_000_000_000,
	"hundreds": 100, "thousands": 1_000, "millions": 1_000_000, "billions": 1_000_000_000, "trillions": 1_000_000_000_000, "dozen": 12, "dozens": 12, "score": 20, "gross": 144, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000,
}

// ordinals are also the denominators of fractions in words.
var ordinals = map[string]int64{
	"half": 2, "halves": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
	"eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16, "seventeenth": 17, "eighteenth": 18, "nineteenth": 19,
	"twentieth": 20, "thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100, "thousandth": 1000, "millionth": 1_000_000,
}

// denominator is the n of "n-ths"; 0 if the word is none.
func denominator(w string) int64 {
	if n := ordinals[w]; n > 0 {
		return n
	}
	return ordinals[strings.TrimSuffix(w, "s")]
}

// numeral is a number in words: whole + num/den, or the decimal text.
type numeral struct {
	whole, num, den int64
	decimal         string
}

func (n numeral) tokens(at Token) []Token {
	put := func(k kind, text string) Token {
		return Token{Kind: k, Text: text, at: at.at, worded: true}
	}
	whole := put(TNum, strconv.FormatInt(n.whole, 10))
	if n.decimal != "" {
		whole.Text = n.decimal
	}
	whole.Spaced = at.Spaced
	if n.den == 0 {
		return []Token{whole}
	}
	fraction := []Token{put(tCmd, "frac"), put(TOp, "{"), put(TNum, strconv.FormatInt(n.num, 10)), put(TOp, "}"),
		put(TOp, "{"), put(TNum, strconv.FormatInt(n.den, 10)), put(TOp, "}")}
	if n.whole == 0 {
		return fraction
	}
	return append([]Token{whole}, fraction...)
}

// numeralAt reads a number in words from the front of the list, as far as it
// goes, and returns how many words it took.
func numeralAt(words []string) (n numeral, used int) {
	whole, i := wholeAt(words)
	switch {
	case i == 0 && len(words) > 1 && (words[0] == "a" || words[0] == "an") && denominator(words[1]) > 0 && words[1] != "second":
		return numeral{num: 1, den: denominator(words[1])}, 2
	case i == 0 && len(words) > 2 && words[0] == "half" && words[1] == "a" && multiples[words[2]] > 1:
		return numeral{whole: multiples[words[2]] / 2}, 3
	case i == 0:
		return n, 0
	}
	rest := words[i:]
	if len(rest) > 0 {
		if d := denominator(rest[0]); d > 0 && whole > 0 { // "two thirds"
			return numeral{num: whole, den: d}, i + 1
		}
	}
	if len(rest) > 1 && rest[0] == "point" {
		var digits strings.Builder
		j := 1
		for ; j < len(rest); j++ {
			d, ok := smallNumerals[rest[j]]
			if !ok {
				if rest[j] != "" && expr.IsDigit(rest[j][0]) && strings.Trim(rest[j], "0123456789") == "" {
					digits.WriteString(rest[j])
					continue
				}
				break
			}
			digits.WriteString(strconv.FormatInt(d, 10))
		}
		if j > 1 {
			return numeral{decimal: strconv.FormatInt(whole, 10) + "." + digits.String()}, i + j
		}
	}
	if f, j := partAt(rest); j > 0 {
		f.whole = whole
		return f, i + j
	}
	return numeral{whole: whole}, i
}

// partAt reads "and a half" or "and three quarters" behind a number.
func partAt(rest []string) (numeral, int) {
	if len(rest) < 3 || rest[0] != "and" {
		return numeral{}, 0
	}
	over := int64(1)
	if rest[1] != "a" && rest[1] != "an" {
		if over = smallNumerals[rest[1]]; over == 0 {
			return numeral{}, 0
		}
	}
	d := denominator(rest[2])
	if d <= over {
		return numeral{}, 0
	}
	return numeral{num: over, den: d}, 3
}

// wholeAt reads a whole number: "three hundred and twenty-one thousand".
func wholeAt(words []string) (value int64, used int) {
	total, current := int64(0), int64(-1)
	last := int64(0) // the value of the last word below a hundred
	for i := 0; i < len(words); i++ {
		w := words[i]
		v, small := smallNumerals[w]
		m := multiples[w]
		switch {
		case small && (current < 0 || last >= 20 && v > 0 && v < 10 || last == 100 && v > 0):
			current = max(current, 0) + v
			last = v
		case small:
			return total + max(current, 0), i
		case i == 0 && (w == "a" || w == "an") && len(words) > 1 && multiples[words[1]] > 0 && words[1] != "score":
			current, last = 1, 0
			continue
		case w == "and" && i > 0 && last >= 100 && i+1 < len(words) && smallNumerals[words[i+1]] > 0:
			continue
		case m == 100 && current > 0 && current < 100:
			current, last = current*100, 100
		case m > 0 && current > 0 && total < 1<<40:
			if m < 1000 { // dozens and scores end a number
				return total + current*m, i + 1
			}
			total, current, last = total+current*m, -1, 100
			used = i + 1
			continue
		default:
			return total + max(current, 0), i
		}
		used = i + 1
	}
	return total + max(current, 0), used
}

// hanDigits are the Chinese numerals below ten, hanPlaces their powers of ten.
var (
	hanDigits = map[rune]int64{'零': 0, '〇': 0, '一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	hanPlaces = map[rune]int64{'十': 10, '百': 100, '千': 1_000, '万': 10_000, '亿': 100_000_000}
)

// hanNumber reads a Chinese number from the front of s and returns how many
// bytes it took.
func hanNumber(s string) (value int64, used int) {
	total, section, digit := int64(0), int64(0), int64(-1)
	for i, r := range s {
		if d, ok := hanDigits[r]; ok {
			if digit > 0 || total > 1<<40 { // 二〇二四: digit by digit
				section = section*10 + digit
				if section > 1<<40 {
					return 0, 0
				}
			}
			digit = d
			used = i + len(string(r))
			continue
		}
		place := hanPlaces[r]
		if place == 0 || used == 0 && place > 10 {
			break
		}
		if place < 10_000 {
			if digit < 0 {
				digit = 1
			}
			section, digit = section+digit*place, -1
		} else {
			total, section, digit = (total+section+max(digit, 0))*place, 0, -1
			if total > 1<<50 {
				return 0, 0
			}
		}
		used = i + len(string(r))
	}
	return total + section + max(digit, 0), used
}
