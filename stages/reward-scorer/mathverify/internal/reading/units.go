package reading

import (
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// unitSize says what a unit measures and how large it is in the base unit of that
// dimension.
type unitSize struct {
	dimension string
	num, den  int64
}

// sizes are the units that are known by their canonical names. Units of one
// dimension convert into each other.
var sizes = map[string]unitSize{
	"nm": {"m", 1, 1_000_000_000}, "um": {"m", 1, 1_000_000}, "mm": {"m", 1, 1000}, "cm": {"m", 1, 100}, "dm": {"m", 1, 10}, "m": {"m", 1, 1}, "km": {"m", 1000, 1},
	"in": {"m", 254, 10_000}, "ft": {"m", 3048, 10_000}, "yd": {"m", 9144, 10_000}, "mi": {"m", 1_609_344, 1000},
	"mg": {"g", 1, 1000}, "g": {"g", 1, 1}, "kg": {"g", 1000, 1}, "tonne": {"g", 1_000_000, 1}, "lb": {"g", 45_359_237, 100_000}, "oz": {"g", 45_359_237, 1_600_000},
	"ms": {"s", 1, 1000}, "s": {"s", 1, 1}, "min": {"s", 60, 1}, "h": {"s", 3600, 1}, "day": {"s", 86_400, 1}, "week": {"s", 604_800, 1},
	"month": {"month", 1, 1}, "year": {"month", 12, 1},
	"ml": {"l", 1, 1000}, "cl": {"l", 1, 100}, "l": {"l", 1, 1}, "gal": {"gal", 1, 1}, "quart": {"gal", 1, 4}, "pint": {"gal", 1, 8}, "acre": {"acre", 1, 1}, "hectare": {"hectare", 1, 1},
	"dollar": {"dollar", 1, 1}, "cent": {"dollar", 1, 100}, "euro": {"euro", 1, 1}, "gbp": {"gbp", 1, 1}, "yen": {"yen", 1, 1}, "rupee": {"rupee", 1, 1}, "yuan": {"yuan", 1, 1}, "peso": {"peso", 1, 1},
	"rad": {"rad", 1, 1}, "rev": {"rev", 1, 1}, "N": {"N", 1, 1}, "J": {"J", 1, 1}, "kJ": {"J", 1000, 1}, "W": {"W", 1, 1}, "kW": {"W", 1000, 1}, "Pa": {"Pa", 1, 1}, "kPa": {"Pa", 1000, 1}, "Hz": {"Hz", 1, 1}, "V": {"V", 1, 1},
	"ohm": {"ohm", 1, 1}, "amp": {"amp", 1, 1}, "mol": {"mol", 1, 1}, "K": {"K", 1, 1}, "C": {"C", 1, 1}, "F": {"F", 1, 1}, "am": {"am", 1, 1}, "o'clock": {"o'clock", 1, 1}, "pm": {"pm", 1, 1}, "byte": {"byte", 1, 1},
}

// units maps spellings of units to their canonical names; "percent" and
// "degree" are signs rather than units, and read as such.
var units = func() map[string]string {
	m := map[string]string{}
	for name, spellings := range map[string]string{
		"nm": "nm nanometer nanometers", "um": "micrometer micrometers", "mm": "mm millimeter millimeters millimetre millimetres 毫米", "cm": "cm cms centimeter centimeters centimetre centimetres 厘米", //nolint:misspell // both spellings are read
		"dm": "dm decimeter decimeters 分米", "m": "m meter meters metre metres 米", "km": "km kms kilometer kilometers kilometre kilometres 千米 公里", //nolint:misspell // both spellings are read
		"in": "in inch inches", "ft": "ft foot feet", "yd": "yd yds yard yards", "mi": "mi mile miles",
		"mg": "mg milligram milligrams", "g": "g gram grams 克", "kg": "kg kgs kilogram kilograms kilo kilos 千克 公斤", "tonne": "tonne tonnes ton tons 吨", "lb": "lb lbs pound pounds", "oz": "oz ounce ounces",
		"ms": "ms millisecond milliseconds", "s": "s sec secs second seconds 秒", "min": "min mins minute minutes 分钟", "h": "h hr hrs hour hours 小时", "day": "day days 天", "week": "week weeks 周",
		"month": "month months 个月", "year": "year years yr yrs 年", "am": "am a.m", "pm": "pm p.m", "o'clock": "o'clock",
		"ml": "ml milliliter milliliters millilitre millilitres 毫升", "cl": "cl", "l": "l liter liters litre litres 升", "gal": "gal gallon gallons", "quart": "quart quarts", "pint": "pint pints", "acre": "acre acres", "hectare": "hectare hectares ha", //nolint:misspell // both spellings are read
		"dollar": "dollar dollars usd bucks 美元", "cent": "cent cents ¢", "euro": "euro euros eur 欧元", "gbp": "gbp quid sterling", "yen": "yen jpy", "rupee": "rupee rupees inr", "yuan": "yuan 元", "peso": "peso pesos",
		"degree": "degree degrees deg 度", "rad": "rad rads radian radians 弧度", "rev": "rev revolution revolutions", "percent": "percent pct percentage",
		"N": "newton newtons", "J": "j joule joules", "kJ": "kj", "W": "w watt watts", "kW": "kw kilowatt kilowatts", "Pa": "pa pascal pascals", "kPa": "kpa", "Hz": "hz hertz", "V": "volt volts", "ohm": "ohm ohms", "amp": "ampere amperes amps",
		"mol": "mol mols mole moles", "K": "kelvin kelvins", "C": "celsius centigrade 摄氏度", "F": "fahrenheit", "byte": "byte bytes",
		"mi/h": "mph", "km/h": "kph kmh kmph", "m/s": "mps", "ft/s": "fps", "mi/gal": "mpg", "rev/min": "rpm", "cm^3": "cc", "m^2": "平方米", "cm^2": "平方厘米", "m^3": "立方米", "cm^3 ": "立方厘米",
	} {
		for _, s := range strings.Fields(spellings) {
			m[s] = strings.TrimSpace(name)
		}
	}
	return m
}()

// LetterUnits are the units of one letter, which a letter in italics is read as
// only if nothing else makes the answers agree.
const LetterUnits = "m g s h l L N J W V"

// BareUnits are the units that a run of letters without \text is read as; all
// others could be a product of variables.
var BareUnits = map[string]bool{
	"mm": true, "cm": true, "km": true, "kg": true, "mph": true, "kph": true, "ft": true, "lb": true, "lbs": true, "oz": true, "hrs": true, "min": true,
	"mins": true, "sec": true, "inch": true, "deg": true, "pct": true, "rad": true, "yd": true, "hr": true, "ml": true, "mL": true,
}

// powerWords come before or behind the unit that they raise, powers behind the
// number.
var (
	powerWords = map[string]string{"square": "^2", "sq": "^2", "cubic": "^3", "cu": "^3"}
	powers     = map[string]int64{"squared": 2, "cubed": 3}
)

// measure is a product of powers of dimensions with a factor.
type measure struct {
	dimensions string
	Factor     *big.Rat
}

// MeasureOf reads a canonical unit such as "kg*m^2/s^2".
func MeasureOf(unit string) (measure, bool) {
	exponents := map[string]int{}
	factor := big.NewRat(1, 1)
	sign := 1
	for rest := unit; rest != ""; {
		end := strings.IndexAny(rest, "*/")
		part, next := rest, ""
		if end >= 0 {
			part, next = rest[:end], rest[end:]
		}
		name, raised, ok := strings.Cut(part, "^")
		power := 1
		if ok {
			n, err := strconv.Atoi(raised)
			if err != nil || n > 9 || n < -9 {
				return measure{}, false
			}
			power = n
		}
		size, known := sizes[name]
		if !known && name != "" {
			return measure{}, false
		}
		if power *= sign; known {
			exponents[size.dimension] += power
			step := big.NewRat(size.num, size.den)
			if power < 0 {
				step.Inv(step)
			}
			for range max(power, -power) {
				factor.Mul(factor, step)
			}
		}
		if next != "" {
			sign = 1
			if next[0] == '/' {
				sign = -1
			}
			next = next[1:]
		}
		rest = next
	}
	var names []string
	for d, n := range exponents {
		if n != 0 {
			names = append(names, d+strconv.Itoa(n))
		}
	}
	sort.Strings(names)
	return measure{strings.Join(names, " "), factor}, true
}

// Convert writes two quantities of different units in the first one's; ok is
// false if the units measure different things.
func Convert(g, p *expr.Node, x, y string) (a, b *expr.Node, ok bool) {
	m, okM := MeasureOf(x)
	n, okN := MeasureOf(y)
	if !okM || !okN || m.dimensions != n.dimensions {
		return nil, nil, false
	}
	ratio := new(big.Rat).Quo(n.Factor, m.Factor)
	if ratio.Cmp(big.NewRat(1, 1)) == 0 {
		return g, p, true
	}
	return g, expr.Mul(expr.Rational(ratio), p), true
}

// unitAt is the canonical unit that the token n places ahead spells, or "".
func (p *parser) unitAt(n int) string {
	t := p.peekAt(n)
	switch {
	case t.Kind == TWord:
		return units[strings.ToLower(strings.Trim(t.Text, " ."))]
	case t.Kind == TLetter && (t.upright || p.UnitLetters || p.unit != "" && p.pos+n > 0 && p.peekAt(n-1).Op("/")) && (strings.Contains(LetterUnits, t.Text) || t.upright && (t.Text == "C" || t.Text == "F")):
		if u := units[t.Text]; u != "" {
			return u
		}
		if t.Text == "C" || t.Text == "F" {
			return t.Text
		}
		return units[strings.ToLower(t.Text)]
	}
	return ""
}

// maxUnit bounds a product of units in bytes.
const maxUnit = 200

// takeUnit reads a unit of one or more factors behind a quantity into the unit
// of the current answer, and says whether one stood there.
func (p *parser) takeUnit() bool {
	start := p.pos
	square, before := "", "*"
	if p.unit == "" {
		before = ""
	}
	switch t := p.peek(); {
	case p.unit != "" && (t.Op("/") || t.Kind == TWord && t.Text == "per" || t.Kind == TWord && t.Text == "a" && p.timeAt(1)):
		before = "/"
		p.pos++
	case p.unit == "" && t.Kind == TWord && t.Text == "per" && p.unitAt(1) != "":
		before = "/"
		p.pos++
	case t.Op("*") && (p.unit != "" || p.unitAt(1) != ""):
		p.pos++
	}
	if t := p.peek(); t.Kind == TWord && powerWords[strings.ToLower(t.Text)] != "" {
		square = powerWords[strings.ToLower(t.Text)]
		p.pos++
	}
	bracket := p.peek().Op("(") && p.unitAt(1) != "" && p.peekAt(2).Op(")")
	if bracket {
		p.pos++
	}
	u := p.unitAt(0)
	if u == "" || u == "percent" || u == "degree" {
		p.pos = start
		return false
	}
	p.pos++
	if bracket {
		p.pos++
	}
	power := square
	if t := p.peek(); t.Kind == TWord && powers[strings.ToLower(t.Text)] > 0 {
		power = "^" + strconv.FormatInt(powers[strings.ToLower(t.Text)], 10)
		p.pos++
	} else if t.Op("^") {
		save := p.pos
		p.pos++
		if n, err := p.exponent(); err == nil && n.Op == expr.OpNum && n.Long == "" {
			power = "^" + n.String()
		} else {
			p.pos = save
		}
	}
	if inverted, ok := strings.CutPrefix(power, "^-"); ok && before != "/" && p.unit != "" { // m s^{-1} is m/s
		before, power = "/", strings.TrimPrefix("^"+inverted, "^1")
	}
	if p.unit == u+power {
		return true // "$5 dollars"
	}
	if power != "" && strings.ContainsAny(u, "/^") || len(p.unit) > maxUnit {
		p.pos = start
		return false
	}
	p.unit += before + u + power
	return true
}

// timeAt says whether a unit of time stands n places ahead: "5 miles an hour".
func (p *parser) timeAt(n int) bool { return p.unitAt(n) != "" && sizes[p.unitAt(n)].dimension == "s" }

// fractionUnit takes "\frac{m}{s}" behind a quantity.
func (p *parser) fractionUnit() bool {
	if !p.peek().cmd("frac") || !p.peekAt(1).Op("{") || p.unitAt(2) == "" {
		return false
	}
	start, unit := p.pos, p.unit
	p.pos += 2
	if p.takeUnit() && p.accept(TOp, "}") && p.accept(TOp, "{") && p.unitAt(0) != "" {
		p.unit += "/"
		over := p.unit
		p.unit = ""
		if p.takeUnit() && p.accept(TOp, "}") {
			p.unit = over + p.unit
			return true
		}
	}
	p.pos, p.unit = start, unit
	return false
}
