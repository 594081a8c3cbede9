package mathverify

import (
	"math/big"
)

// function evaluates the known functions.
func (v *numeric) function(n *node) (cball, error) {
	switch n.name {
	case "max", "min":
		return v.extreme(n)
	case "fact", "gamma", "binom", "gcd", "lcm", "mod":
		return v.discrete(n)
	}
	if len(n.kids) == 0 || len(n.name) > 0 && n.name[0] == '@' {
		return cball{}, errUnknown
	}
	x, err := v.eval(n.kids[0])
	if err != nil {
		return cball{}, err
	}
	switch n.name {
	case "abs", "norm":
		return v.cabs(x)
	case "re":
		return v.realBall(x.re), nil
	case "im":
		return v.realBall(x.im), nil
	case "arg":
		r, err := v.arg(x)
		return v.realBall(r), err
	case "root":
		k, err := v.exact(n.kids[1], v.vars)
		if err != nil {
			return v.eval(pow(n.kids[0], pow(n.kids[1], integer(-1))))
		}
		if k.Sign() == 0 {
			return cball{}, errUndefined
		}
		if !k.IsInt() || k.Sign() <= 0 || k.Num().BitLen() > 40 {
			return v.eval(pow(n.kids[0], rational(new(big.Rat).Inv(k))))
		}
		return v.rootOf(x, k.Num().Int64())
	case "ln":
		if !v.complex && x.re.sign() < 0 {
			return cball{}, errNotReal
		}
		return v.clog(x)
	case "logb":
		y, err := v.eval(n.kids[1])
		if err != nil {
			return cball{}, err
		}
		if !v.complex && (x.re.sign() < 0 || y.re.sign() < 0) {
			return cball{}, errNotReal
		}
		lb, err := v.clog(x)
		if err != nil {
			return cball{}, err
		}
		ly, err := v.clog(y)
		if err != nil {
			return cball{}, err
		}
		inv, err := v.cinv(lb)
		if err != nil {
			return cball{}, err
		}
		return v.cmul(ly, inv)
	case "floor", "ceil":
		if r, err := v.exact(n, v.vars); err == nil {
			return v.realBall(v.rat(r)), nil
		}
		return v.floor(x, n.name == "ceil")
	}
	if !x.real {
		return v.complexFunction(n.name, x)
	}
	r, err := v.realFunction(n.name, x.re)
	return v.realBall(r), err
}

func (v *numeric) floor(x cball, up bool) (cball, error) {
	if !x.real {
		return cball{}, errUnknown
	}
	if m := x.re.magnitude(); m.MantExp(nil) > 4000 {
		return cball{}, errPrecision
	}
	lo := new(big.Float).SetPrec(v.prec).SetMode(big.ToNegativeInf).Sub(x.re.mid, x.re.rad)
	hi := new(big.Float).SetPrec(v.prec).SetMode(big.ToPositiveInf).Add(x.re.mid, x.re.rad)
	down := func(f *big.Float) *big.Int {
		i, acc := f.Int(nil)
		if acc == big.Above { // truncation moved up: f was negative
			i.Sub(i, big.NewInt(1))
		}
		return i
	}
	a, b := down(lo), down(hi)
	if a.Cmp(b) != 0 {
		return cball{}, errPrecision
	}
	if up {
		a.Add(a, big.NewInt(1))
	}
	return v.realBall(v.rat(new(big.Rat).SetInt(a))), nil
}

func (v *numeric) realFunction(name string, x ball) (ball, error) {
	switch name {
	case "sin", "cos", "tan", "cot", "sec", "csc":
		s, c, err := v.sincos(x)
		if err != nil {
			return ball{}, err
		}
		switch name {
		case "sin":
			return s, nil
		case "cos":
			return c, nil
		case "tan":
			return v.div(s, c)
		case "cot":
			return v.div(c, s)
		case "sec":
			return v.inv(c)
		default:
			return v.inv(s)
		}
	case "asin":
		return v.asin(x)
	case "acos":
		return v.acos(x)
	case "atan":
		return v.atan(x)
	case "acot", "asec", "acsc":
		i, err := v.inv(x)
		if err != nil {
			return ball{}, err
		}
		return v.realFunction(map[string]string{"acot": "atan", "asec": "acos", "acsc": "asin"}[name], i)
	case "sinh", "cosh", "tanh", "coth", "sech", "csch":
		return v.hyperbolic(name, x)
	case "asinh", "acosh", "atanh":
		return v.inverseHyperbolic(name, x)
	}
	return ball{}, errUnknown
}

func (v *numeric) hyperbolic(name string, x ball) (ball, error) {
	p, err := v.exp(x)
	if err != nil {
		return ball{}, err
	}
	m, err := v.inv(p)
	if err != nil {
		return ball{}, err
	}
	s, c := v.sub(p, m), v.add(p, m)
	half := v.rat(big.NewRat(1, 2))
	switch name {
	case "sinh":
		return v.mul(s, half)
	case "cosh":
		return v.mul(c, half)
	case "tanh":
		return v.div(s, c)
	case "coth":
		return v.div(c, s)
	case "sech":
		return v.div(v.small(2), c)
	}
	return v.div(v.small(2), s)
}

func (v *numeric) inverseHyperbolic(name string, x ball) (ball, error) {
	one := v.small(1)
	if name == "atanh" {
		q, err := v.div(v.add(one, x), v.sub(one, x))
		if err != nil {
			return ball{}, err
		}
		l, err := v.log(q)
		if err != nil {
			return ball{}, err
		}
		return v.mul(l, v.rat(big.NewRat(1, 2)))
	}
	sq, err := v.mul(x, x)
	if err != nil {
		return ball{}, err
	}
	if name == "asinh" {
		sq = v.add(sq, one)
	} else {
		if v.sub(x, one).sign() < 0 {
			return ball{}, errNotReal
		}
		sq = v.sub(sq, one)
	}
	r, err := v.sqrt(sq)
	if err != nil {
		return ball{}, err
	}
	return v.log(v.add(x, r))
}

// complexFunction covers sine, cosine and their hyperbolic kin off the real
// axis through the exponential function.
func (v *numeric) complexFunction(name string, x cball) (cball, error) {
	i := cball{re: v.small(0), im: v.small(1)}
	y := x
	if name == "sin" || name == "cos" || name == "tan" {
		var err error
		if y, err = v.cmul(i, x); err != nil {
			return cball{}, err
		}
	}
	p, err := v.cexp(y)
	if err != nil {
		return cball{}, err
	}
	m, err := v.cinv(p)
	if err != nil {
		return cball{}, err
	}
	half := v.realBall(v.rat(big.NewRat(1, 2)))
	switch name {
	case "cos", "cosh":
		return v.cmul(v.cadd(p, m), half)
	case "sinh":
		return v.cmul(v.cadd(p, m.cneg()), half)
	case "sin":
		s, err := v.cmul(v.cadd(p, m.cneg()), half)
		if err != nil {
			return cball{}, err
		}
		return v.cmul(s, i.cneg())
	}
	return cball{}, errUnknown
}

func (v *numeric) extreme(n *node) (cball, error) {
	var best cball
	for k, kid := range n.kids {
		x, err := v.eval(kid)
		if err != nil {
			return cball{}, err
		}
		if !x.real {
			return cball{}, errUnknown
		}
		if k == 0 {
			best = x
			continue
		}
		switch s := v.sub(x.re, best.re).sign(); {
		case s == 0 && !kid.same(n.kids[0]):
			return cball{}, errPrecision
		case s > 0 && n.name == "max", s < 0 && n.name == "min":
			best = x
		}
	}
	return best, nil
}

// discrete evaluates what is defined on integers first, and factorials of
// other numbers by the gamma function.
func (v *numeric) discrete(n *node) (cball, error) {
	if r, err := v.exact(n, v.vars); err == nil {
		return v.realBall(v.rat(r)), nil
	}
	if n.name == "fact" || n.name == "gamma" {
		if k, err := v.exact(n.kids[0], v.vars); err == nil && k.IsInt() && k.Sign() < 0 {
			return cball{}, errUndefined // a pole
		}
		x, err := v.eval(n.kids[0])
		if err != nil {
			return cball{}, err
		}
		if !x.real {
			return cball{}, errUnknown
		}
		if n.name == "fact" {
			x.re = v.add(x.re, v.small(1))
		}

		g, err := v.gamma(x.re)
		return v.realBall(g), err
	}
	if n.name == "binom" {
		return v.eval(div(call("fact", n.kids[0]), mul(call("fact", n.kids[1]), call("fact", sub(n.kids[0], n.kids[1])))))
	}
	if n.name == "mod" {
		q, err := v.eval(div(n.kids[0], n.kids[1]))
		if err != nil {
			return cball{}, err
		}
		f, err := v.floor(q, false)
		if err != nil {
			return cball{}, err
		}
		b, err := v.eval(n.kids[1])
		if err != nil {
			return cball{}, err
		}
		x, err := v.eval(n.kids[0])
		if err != nil {
			return cball{}, err
		}
		m, err := v.cmul(f, b)
		return v.cadd(x, m.cneg()), err
	}
	return cball{}, errUnknown
}

// series evaluates finite sums and products term by term.
func (v *numeric) series(n *node) (cball, error) {
	if r, err := v.exact(n, v.vars); err == nil {
		return v.realBall(v.rat(r)), nil
	}
	if v.estimate && (n.name != "sum" && n.name != "prod" || len(n.kids) == 4 && n.kids[1].op == opInf) {
		return v.estimateBig(n)
	}
	if n.name != "sum" && n.name != "prod" || n.kids[2].op != opSym || n.kids[2].name == "" {
		return cball{}, errUnknown
	}
	lo, err := v.exact(n.kids[0], v.vars)
	if err != nil {
		return cball{}, errUnknown
	}
	hi, err := v.exact(n.kids[1], v.vars)
	if err != nil {
		return cball{}, errUnknown
	}
	if !lo.IsInt() || !hi.IsInt() || lo.Num().BitLen() > 40 || hi.Num().BitLen() > 40 {
		return cball{}, errUnknown
	}
	from, to := lo.Num().Int64(), hi.Num().Int64()
	if to-from > maxIndices {
		return cball{}, errUnknown
	}
	inner := *v
	inner.vars = env{}
	for k, x := range v.vars {
		inner.vars[k] = x
	}
	acc := v.realBall(v.small(map[string]int64{"sum": 0, "prod": 1}[n.name]))
	for k := from; k <= to; k++ {
		inner.vars[n.kids[2].name] = big.NewRat(k, 1)
		x, err := inner.eval(n.kids[3])
		if err != nil {
			return cball{}, err
		}
		if n.name == "sum" {
			acc = v.cadd(acc, x)
		} else if acc, err = v.cmul(acc, x); err != nil {
			return cball{}, err
		}
	}
	return acc, nil
}
