package deciding

import (
	"github.com/sluice-rl/sluice/stages/reward-scorer/mathverify/internal/expr"
)

// maxMatrix bounds the rows and columns of matrices that are multiplied,
// inverted or expanded.
const maxMatrix = 6

// matrixOf evaluates sums, products and powers of matrices; nil if n is no
// matrix or cannot be evaluated.
func (c *comparer) matrixOf(n *expr.Node) *expr.Node {
	switch n.Op {
	case expr.OpMatrix:
		return n
	case expr.OpBrack, expr.OpTuple:
		return rowsOf(n)
	case expr.OpMul:
		if !expr.IsMatrix(n) {
			return nil
		}
		var m *expr.Node
		var scalars []*expr.Node
		for _, k := range n.Kids {
			switch km := c.matrixOf(k); {
			case km == nil:
				scalars = append(scalars, k)
			case m == nil:
				m = km
			default:
				if m = c.matrixProduct(m, km); m == nil {
					return nil
				}
			}
		}
		if m == nil {
			return nil
		}
		if len(scalars) == 0 {
			return m
		}
		return mapMatrix(m, func(_ int, k *expr.Node) *expr.Node {
			return expr.Mul(append(append([]*expr.Node(nil), scalars...), k)...)
		})
	case expr.OpAdd:
		if !expr.IsMatrix(n) {
			return nil
		}
		acc := c.matrixOf(n.Kids[0])
		for _, k := range n.Kids[1:] {
			m := c.matrixOf(k)
			if acc == nil || m == nil || m.Cols != acc.Cols || len(m.Kids) != len(acc.Kids) {
				return nil
			}
			acc = mapMatrix(acc, func(i int, a *expr.Node) *expr.Node { return expr.Add(a, m.Kids[i]) })
		}
		return acc
	case expr.OpPow:
		if expr.IsMatrix(n) {
			return c.matrixPower(n)
		}
	}
	return nil
}

// rowsOf reads [[1,2],[3,4]] as a matrix.
func rowsOf(n *expr.Node) *expr.Node {
	if len(n.Kids) == 0 {
		return nil
	}
	var cells []*expr.Node
	cols := len(n.Kids[0].Kids)
	for _, row := range n.Kids {
		if row.Op != expr.OpBrack || len(row.Kids) != cols || cols == 0 {
			return nil
		}
		cells = append(cells, row.Kids...)
	}
	return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: cols})
}

func mapMatrix(m *expr.Node, f func(int, *expr.Node) *expr.Node) *expr.Node {
	kids := make([]*expr.Node, len(m.Kids))
	for i, k := range m.Kids {
		if !k.IsExpr() {
			return nil
		}
		kids[i] = f(i, k)
	}
	return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: kids, Cols: m.Cols})
}

// cell adds up products, at once if they are rational, so that entries stay
// small.
func (c *comparer) cell(n *expr.Node) *expr.Node {
	if r, err := c.Exact(n, nil); err == nil {
		return expr.Rational(r)
	}
	return n
}

func (c *comparer) matrixProduct(a, b *expr.Node) *expr.Node {
	rows, inner := len(a.Kids)/a.Cols, a.Cols
	if len(b.Kids) != inner*b.Cols || max(rows, inner, b.Cols) > maxMatrix {
		return nil
	}
	var cells []*expr.Node
	for i := range rows {
		for j := range b.Cols {
			terms := make([]*expr.Node, inner)
			for k := range inner {
				x, y := a.Kids[i*inner+k], b.Kids[k*b.Cols+j]
				if !x.IsExpr() || !y.IsExpr() {
					return nil
				}
				terms[k] = expr.Mul(x, y)
			}
			cell := c.cell(expr.Add(terms...))
			if cell.Size > expr.MaxBuilt || c.Spend(int(cell.Size)/8) != nil {
				return nil
			}
			cells = append(cells, cell)
		}
	}
	return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: b.Cols})
}

// matrixPower evaluates A^n for small whole n, the inverse and the transpose.
func (c *comparer) matrixPower(n *expr.Node) *expr.Node {
	m := c.matrixOf(n.Kids[0])
	if m == nil {
		return nil
	}
	rows := len(m.Kids) / m.Cols
	if e := n.Kids[1]; e.Op == expr.OpSym && (e.Name == "T" || e.Name == `\top`) {
		var cells []*expr.Node
		for j := range m.Cols {
			for i := range rows {
				cells = append(cells, m.Kids[i*m.Cols+j])
			}
		}
		return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: rows})
	}
	e, err := c.Exact(n.Kids[1], nil)
	if err != nil || !e.IsInt() || rows != m.Cols || rows > maxMatrix || !e.Num().IsInt64() {
		return nil
	}
	k := e.Num().Int64()
	if k < -8 || k > 64 || k == 0 {
		return nil
	}
	if k < 0 {
		if m = c.inverseMatrix(m); m == nil {
			return nil
		}
		k = -k
	}
	acc := m
	for range k - 1 {
		if acc = c.matrixProduct(acc, m); acc == nil {
			return nil
		}
	}
	return acc
}

// minor is m without row i and column j.
func minor(m *expr.Node, i, j int) *expr.Node {
	var cells []*expr.Node
	for k, x := range m.Kids {
		if k/m.Cols != i && k%m.Cols != j {
			cells = append(cells, x)
		}
	}
	return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: m.Cols - 1})
}

// determinant expands along the first row; nil if m is not square or too large.
func (c *comparer) determinant(m *expr.Node) *expr.Node {
	size := m.Cols
	if size*size != len(m.Kids) || size > 5 {
		return nil
	}
	for _, k := range m.Kids {
		if !k.IsExpr() {
			return nil
		}
	}
	if size == 1 {
		return m.Kids[0]
	}
	terms := make([]*expr.Node, size)
	for j := range size {
		d := c.determinant(minor(m, 0, j))
		if d == nil {
			return nil
		}
		terms[j] = expr.Mul(m.Kids[j], d)
		if j%2 == 1 {
			terms[j] = expr.Neg(terms[j])
		}
	}
	d := expr.Add(terms...)
	if d.Size > expr.MaxBuilt || c.Spend(int(d.Size)/8) != nil {
		return nil
	}
	return c.cell(d)
}

func (c *comparer) inverseMatrix(m *expr.Node) *expr.Node {
	d := c.determinant(m)
	if d == nil {
		return nil
	}
	if r, err := c.Exact(d, nil); err == nil && r.Sign() == 0 {
		return nil
	}
	size := m.Cols
	if size == 1 {
		return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: []*expr.Node{expr.Pow(d, expr.Integer(-1))}, Cols: 1})
	}
	cells := make([]*expr.Node, len(m.Kids))
	for i := range size {
		for j := range size {
			cofactor := c.determinant(minor(m, j, i))
			if cofactor == nil {
				return nil
			}
			if (i+j)%2 == 1 {
				cofactor = expr.Neg(cofactor)
			}
			cells[i*size+j] = c.cell(expr.Div(cofactor, d))
		}
	}
	return expr.Seal(&expr.Node{Op: expr.OpMatrix, Kids: cells, Cols: size})
}

// expandDeterminants replaces det A by its value where it can be expanded.
func (c *comparer) expandDeterminants(n *expr.Node) *expr.Node {
	if !n.Any(func(k *expr.Node) bool { return k.Op == expr.OpFunc && (k.Name == "det" || k.Name == "tr") }) {
		return n
	}
	return n.Rewrite(func(k *expr.Node) *expr.Node {
		if k.Op != expr.OpFunc || k.Name != "det" && k.Name != "tr" {
			return k
		}
		m := c.matrixOf(k.Kids[0])
		if m == nil || m.Cols*m.Cols != len(m.Kids) {
			return k
		}
		if k.Name == "tr" {
			diagonal := make([]*expr.Node, m.Cols)
			for i := range diagonal {
				diagonal[i] = m.Kids[i*(m.Cols+1)]
			}
			return expr.Add(diagonal...)
		}
		if d := c.determinant(m); d != nil {
			return d
		}
		return k
	})
}

func (c *comparer) matrices(a, b *expr.Node) result {
	if a.Cols != b.Cols || len(a.Kids) != len(b.Kids) {
		return different(MethodStructure, "matrices of different shape")
	}
	return c.inOrder(a.Kids, b.Kids)
}

func (c *comparer) matrixWith(a, b, g, p *expr.Node) result {
	if a != nil && b != nil {
		return c.matrices(a, b)
	}
	if a == nil && b == nil {
		return undecided(MethodStructure, "operations on matrices that are not evaluated")
	}
	m, other := a, p
	if a == nil {
		m, other = b, g
	}
	switch {
	case len(m.Kids) == 1:
		return c.value(m.Kids[0], other)
	case (m.Cols == 1 || m.Cols == len(m.Kids)) && (other.Op == expr.OpTuple || other.Op == expr.OpBrack):
		return c.inOrder(m.Kids, other.Kids)
	case other.Op == expr.OpList || other.Op == expr.OpSet:
		return c.unordered([]*expr.Node{m}, other.Kids)
	case expr.IsMatrix(other):
		return undecided(MethodStructure, "an operation on matrices that is not evaluated")
	}
	return different(MethodStructure, "a matrix against something else")
}
