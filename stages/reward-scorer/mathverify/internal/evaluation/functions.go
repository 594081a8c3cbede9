package evaluation

import (
	"math/big"

	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// function evaluates the known functions.
func (v *Numeric) function(n *expr.Node) (Cball, error) {
	switch n.Name {
	case "max", "min":
		return v.extreme(n)
	case "fact", "gamma", "binom", "gcd", "lcm", "mod":
		return v.discrete(n)
	}
	if len(n.Kids) == 0 || len(n.Name) > 0 && n.Name[0] == '@' {
		return Cball{}, ErrUnknown
	}
	x, err := v.Eval(n.Kids[0])
	if err != nil {
		return Cball{}, err
	}
	switch n.Name {
	case "abs", "norm":
		return v.cabs(x)
	case "re":
		return v.realBall(x.Re), nil
	case "im":
		return v.realBall(x.Im), nil
	case "arg":
		r, err := v.arg(x)
		return v.realBall(r), err
	case "root":
		k, err := v.Exact(n.Kids[1], v.Vars)
		if err != nil {
			return v.Eval(expr.Pow(n.Kids[0], expr.Pow(n.Kids[1], expr.Integer(-1))))
		}
		if k.Sign() == 0 {
			return Cball{}, ErrUndefined
		}
		if !k.IsInt() || k.Sign() <= 0 || k.Num().BitLen() > 40 {
			return v.Eval(expr.Pow(n.Kids[0], expr.Rational(new(big.Rat).Inv(k))))
		}
		return v.rootOf(x, k.Num().Int64())
	case "ln":
		if !v.Complex && x.Re.Sign() < 0 {
			return Cball{}, errNotReal
		}
		return v.clog(x)
	case "logb":
		y, err := v.Eval(n.Kids[1])
		if err != nil {
			return Cball{}, err
		}
		if !v.Complex && (x.Re.Sign() < 0 || y.Re.Sign() < 0) {
			return Cball{}, errNotReal
		}
		lb, err := v.clog(x)
		if err != nil {
			return Cball{}, err
		}
		ly, err := v.clog(y)
		if err != nil {
			return Cball{}, err
		}
		inv, err := v.cinv(lb)
		if err != nil {
			return Cball{}, err
		}
		return v.cmul(ly, inv)
	case "floor", "ceil":
		if r, err := v.Exact(n, v.Vars); err == nil {
			return v.realBall(v.rat(r)), nil
		}
		return v.floor(x, n.Name == "ceil")
	}
	if !x.Real {
		return v.complexFunction(n.Name, x)
	}
	r, err := v.realFunction(n.Name, x.Re)
	return v.realBall(r), err
}

func (v *Numeric) floor(x Cball, up bool) (Cball, error) {
	if !x.Real {
		return Cball{}, ErrUnknown
	}
	if m := x.Re.Magnitude(); m.MantExp(nil) > 4000 {
		return Cball{}, ErrPrecision
	}
	lo := new(big.Float).SetPrec(v.Prec).SetMode(big.ToNegativeInf).Sub(x.Re.Mid, x.Re.Rad)
	hi := new(big.Float).SetPrec(v.Prec).SetMode(big.ToPositiveInf).Add(x.Re.Mid, x.Re.Rad)
	down := func(f *big.Float) *big.Int {
		i, acc := f.Int(nil)
		if acc == big.Above { // truncation moved up: f was negative
			i.Sub(i, big.NewInt(1))
		}
		return i
	}
	a, b := down(lo), down(hi)
	if a.Cmp(b) != 0 {
		return Cball{}, ErrPrecision
	}
	if up {
		a.Add(a, big.NewInt(1))
	}
	return v.realBall(v.rat(new(big.Rat).SetInt(a))), nil
}

func (v *Numeric) realFunction(name string, x ball) (ball, error) {
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
	return ball{}, ErrUnknown
}

func (v *Numeric) hyperbolic(name string, x ball) (ball, error) {
	p, err := v.exp(x)
	if err != nil {
		return ball{}, err
	}
	m, err := v.inv(p)
	if err != nil {
		return ball{}, err
	}
	s, c := v.Sub(p, m), v.add(p, m)
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

func (v *Numeric) inverseHyperbolic(name string, x ball) (ball, error) {
	one := v.small(1)
	if name == "atanh" {
		q, err := v.div(v.add(one, x), v.Sub(one, x))
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
		if v.Sub(x, one).Sign() < 0 {
			return ball{}, errNotReal
		}
		sq = v.Sub(sq, one)
	}
	r, err := v.sqrt(sq)
	if err != nil {
		return ball{}, err
	}
	return v.log(v.add(x, r))
}

// complexFunction covers sine, cosine and their hyperbolic kin off the real
// axis through the exponential function.
func (v *Numeric) complexFunction(name string, x Cball) (Cball, error) {
	i := Cball{Re: v.small(0), Im: v.small(1)}
	y := x
	if name == "sin" || name == "cos" || name == "tan" {
		var err error
		if y, err = v.cmul(i, x); err != nil {
			return Cball{}, err
		}
	}
	p, err := v.cexp(y)
	if err != nil {
		return Cball{}, err
	}
	m, err := v.cinv(p)
	if err != nil {
		return Cball{}, err
	}
	half := v.realBall(v.rat(big.NewRat(1, 2)))
	switch name {
	case "cos", "cosh":
		return v.cmul(v.Cadd(p, m), half)
	case "sinh":
		return v.cmul(v.Cadd(p, m.Cneg()), half)
	case "sin":
		s, err := v.cmul(v.Cadd(p, m.Cneg()), half)
		if err != nil {
			return Cball{}, err
		}
		return v.cmul(s, i.Cneg())
	}
	return Cball{}, ErrUnknown
}

func (v *Numeric) extreme(n *expr.Node) (Cball, error) {
	var best Cball
	for k, kid := range n.Kids {
		x, err := v.Eval(kid)
		if err != nil {
			return Cball{}, err
		}
		if !x.Real {
			return Cball{}, ErrUnknown
		}
		if k == 0 {
			best = x
			continue
		}
		switch s := v.Sub(x.Re, best.Re).Sign(); {
		case s == 0 && !kid.Same(n.Kids[0]):
			return Cball{}, ErrPrecision
		case s > 0 && n.Name == "max", s < 0 && n.Name == "min":
			best = x
		}
	}
	return best, nil
}

// discrete evaluates what is defined on integers first, and factorials of
// other numbers by the gamma function.
func (v *Numeric) discrete(n *expr.Node) (Cball, error) {
	if r, err := v.Exact(n, v.Vars); err == nil {
		return v.realBall(v.rat(r)), nil
	}
	if n.Name == "fact" || n.Name == "gamma" {
		if k, err := v.Exact(n.Kids[0], v.Vars); err == nil && k.IsInt() && k.Sign() < 0 {
			return Cball{}, ErrUndefined // a pole
		}
		x, err := v.Eval(n.Kids[0])
		if err != nil {
			return Cball{}, err
		}
		if !x.Real {
			return Cball{}, ErrUnknown
		}
		if n.Name == "fact" {
			x.Re = v.add(x.Re, v.small(1))
		}

		g, err := v.gamma(x.Re)
		return v.realBall(g), err
	}
	if n.Name == "binom" {
		return v.Eval(expr.Div(expr.Call("fact", n.Kids[0]), expr.Mul(expr.Call("fact", n.Kids[1]), expr.Call("fact", expr.Sub(n.Kids[0], n.Kids[1])))))
	}
	if n.Name == "mod" {
		q, err := v.Eval(expr.Div(n.Kids[0], n.Kids[1]))
		if err != nil {
			return Cball{}, err
		}
		f, err := v.floor(q, false)
		if err != nil {
			return Cball{}, err
		}
		b, err := v.Eval(n.Kids[1])
		if err != nil {
			return Cball{}, err
		}
		x, err := v.Eval(n.Kids[0])
		if err != nil {
			return Cball{}, err
		}
		m, err := v.cmul(f, b)
		return v.Cadd(x, m.Cneg()), err
	}
	return Cball{}, ErrUnknown
}

// series evaluates finite sums and products term by term.
func (v *Numeric) series(n *expr.Node) (Cball, error) {
	if r, err := v.Exact(n, v.Vars); err == nil {
		return v.realBall(v.rat(r)), nil
	}
	if v.Estimate && (n.Name != "sum" && n.Name != "prod" || len(n.Kids) == 4 && n.Kids[1].Op == expr.OpInf) {
		return v.estimateBig(n)
	}
	if n.Name != "sum" && n.Name != "prod" || n.Kids[2].Op != expr.OpSym || n.Kids[2].Name == "" {
		return Cball{}, ErrUnknown
	}
	lo, err := v.Exact(n.Kids[0], v.Vars)
	if err != nil {
		return Cball{}, ErrUnknown
	}
	hi, err := v.Exact(n.Kids[1], v.Vars)
	if err != nil {
		return Cball{}, ErrUnknown
	}
	if !lo.IsInt() || !hi.IsInt() || lo.Num().BitLen() > 40 || hi.Num().BitLen() > 40 {
		return Cball{}, ErrUnknown
	}
	from, to := lo.Num().Int64(), hi.Num().Int64()
	if to-from > maxIndices {
		return Cball{}, ErrUnknown
	}
	inner := *v
	inner.Vars = Env{}
	for k, x := range v.Vars {
		inner.Vars[k] = x
	}
	acc := v.realBall(v.small(map[string]int64{"sum": 0, "prod": 1}[n.Name]))
	for k := from; k <= to; k++ {
		inner.Vars[n.Kids[2].Name] = big.NewRat(k, 1)
		x, err := inner.Eval(n.Kids[3])
		if err != nil {
			return Cball{}, err
		}
		if n.Name == "sum" {
			acc = v.Cadd(acc, x)
		} else if acc, err = v.cmul(acc, x); err != nil {
			return Cball{}, err
		}
	}
	return acc, nil
}
