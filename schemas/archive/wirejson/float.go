package wirejson

import (
	"math"
	"strconv"
	"unsafe"
)

// float reads a number of JSON that is finite.
func float(text []byte, bits int) (v float64, rest []byte, ok bool) {
	i := 0
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		i++
	}
	// The number is mantissa / 10^decimals, unless there are more digits than fit.
	var mantissa uint64
	whole := i
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(text[i]-'0')
	}
	if i == whole || text[whole] == '0' && i > whole+1 {
		return 0, text, false
	}
	figures, decimals := i-whole, 0
	if i < len(text) && text[i] == '.' {
		point := i
		for i++; i < len(text) && text[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(text[i]-'0')
		}
		if decimals = i - point - 1; decimals == 0 {
			return 0, text, false
		}
	}
	if i < len(text) && text[i] == 'e' {
		i++
		if i < len(text) && (text[i] == '-' || text[i] == '+') {
			i++
		}
		exponent := i
		for ; i < len(text) && text[i]-'0' <= 9; i++ {
		}
		if i == exponent {
			return 0, text, false
		}
	} else if v, ok := quotient(mantissa, decimals, bits); ok && figures+decimals < 19 {
		if negative {
			v = -v
		}
		return v, text[i:], true
	}
	// The text is only read, and not kept.
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), i), bits)
	return v, text[i:], err == nil
}

// powers of ten, as far as a float64 has them exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// quotient is the float nearest to mantissa / 10^decimals where one division, of two
// numbers that a float64 has exactly, gives it.
func quotient(mantissa uint64, decimals, bits int) (v float64, ok bool) {
	if mantissa > 1<<53 || decimals >= len(powers) {
		return 0, false
	}
	v = float64(mantissa) / powers[decimals]
	if bits == 64 || v == 0 {
		return v, true
	}
	// Rounded once more, to a float32, it is the nearest one unless it lies just between
	// two of them, where the first rounding may have put it.
	const below, between = 1<<29 - 1, 1 << 28
	ok = math.Float64bits(v)&below != between && v > 1e-30 && v < 1e30
	return float64(float32(v)), ok
}
