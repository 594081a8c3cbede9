package mathverify

// maxMatrix bounds the rows and columns of matrices that are multiplied,
// inverted or expanded.
const maxMatrix = 6

// matrixOf evaluates sums, products and powers of matrices; nil if n is no
// matrix or cannot be evaluated.
func (c *comparer) matrixOf(n *node) *node {
	switch n.op {
	case opMatrix:
		return n
	case opBrack, opTuple:
		return rowsOf(n)
	case opMul:
		if !isMatrix(n) {
			return nil
		}
		var m *node
		var scalars []*node
		for _, k := range n.kids {
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
		return mapMatrix(m, func(_ int, k *node) *node { return mul(append(append([]*node(nil), scalars...), k)...) })
	case opAdd:
		if !isMatrix(n) {
			return nil
		}
		acc := c.matrixOf(n.kids[0])
		for _, k := range n.kids[1:] {
			m := c.matrixOf(k)
			if acc == nil || m == nil || m.cols != acc.cols || len(m.kids) != len(acc.kids) {
				return nil
			}
			acc = mapMatrix(acc, func(i int, a *node) *node { return add(a, m.kids[i]) })
		}
		return acc
	case opPow:
		if isMatrix(n) {
			return c.matrixPower(n)
		}
	}
	return nil
}

// rowsOf reads [[1,2],[3,4]] as a matrix.
func rowsOf(n *node) *node {
	if len(n.kids) == 0 {
		return nil
	}
	var cells []*node
	cols := len(n.kids[0].kids)
	for _, row := range n.kids {
		if row.op != opBrack || len(row.kids) != cols || cols == 0 {
			return nil
		}
		cells = append(cells, row.kids...)
	}
	return seal(&node{op: opMatrix, kids: cells, cols: cols})
}

func mapMatrix(m *node, f func(int, *node) *node) *node {
	kids := make([]*node, len(m.kids))
	for i, k := range m.kids {
		if !k.isExpr() {
			return nil
		}
		kids[i] = f(i, k)
	}
	return seal(&node{op: opMatrix, kids: kids, cols: m.cols})
}

// cell adds up products, at once if they are rational, so that entries stay
// small.
func (c *comparer) cell(n *node) *node {
	if r, err := c.exact(n, nil); err == nil {
		return rational(r)
	}
	return n
}

func (c *comparer) matrixProduct(a, b *node) *node {
	rows, inner := len(a.kids)/a.cols, a.cols
	if len(b.kids) != inner*b.cols || max(rows, inner, b.cols) > maxMatrix {
		return nil
	}
	var cells []*node
	for i := range rows {
		for j := range b.cols {
			terms := make([]*node, inner)
			for k := range inner {
				x, y := a.kids[i*inner+k], b.kids[k*b.cols+j]
				if !x.isExpr() || !y.isExpr() {
					return nil
				}
				terms[k] = mul(x, y)
			}
			cell := c.cell(add(terms...))
			if cell.size > maxBuilt || c.spend(int(cell.size)/8) != nil {
				return nil
			}
			cells = append(cells, cell)
		}
	}
	return seal(&node{op: opMatrix, kids: cells, cols: b.cols})
}

// matrixPower evaluates A^n for small whole n, the inverse and the transpose.
func (c *comparer) matrixPower(n *node) *node {
	m := c.matrixOf(n.kids[0])
	if m == nil {
		return nil
	}
	rows := len(m.kids) / m.cols
	if e := n.kids[1]; e.op == opSym && (e.name == "T" || e.name == `\top`) {
		var cells []*node
		for j := range m.cols {
			for i := range rows {
				cells = append(cells, m.kids[i*m.cols+j])
			}
		}
		return seal(&node{op: opMatrix, kids: cells, cols: rows})
	}
	e, err := c.exact(n.kids[1], nil)
	if err != nil || !e.IsInt() || rows != m.cols || rows > maxMatrix || !e.Num().IsInt64() {
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
func minor(m *node, i, j int) *node {
	var cells []*node
	for k, x := range m.kids {
		if k/m.cols != i && k%m.cols != j {
			cells = append(cells, x)
		}
	}
	return seal(&node{op: opMatrix, kids: cells, cols: m.cols - 1})
}

// determinant expands along the first row; nil if m is not square or too large.
func (c *comparer) determinant(m *node) *node {
	size := m.cols
	if size*size != len(m.kids) || size > 5 {
		return nil
	}
	for _, k := range m.kids {
		if !k.isExpr() {
			return nil
		}
	}
	if size == 1 {
		return m.kids[0]
	}
	terms := make([]*node, size)
	for j := range size {
		d := c.determinant(minor(m, 0, j))
		if d == nil {
			return nil
		}
		terms[j] = mul(m.kids[j], d)
		if j%2 == 1 {
			terms[j] = neg(terms[j])
		}
	}
	d := add(terms...)
	if d.size > maxBuilt || c.spend(int(d.size)/8) != nil {
		return nil
	}
	return c.cell(d)
}

func (c *comparer) inverseMatrix(m *node) *node {
	d := c.determinant(m)
	if d == nil {
		return nil
	}
	if r, err := c.exact(d, nil); err == nil && r.Sign() == 0 {
		return nil
	}
	size := m.cols
	if size == 1 {
		return seal(&node{op: opMatrix, kids: []*node{pow(d, integer(-1))}, cols: 1})
	}
	cells := make([]*node, len(m.kids))
	for i := range size {
		for j := range size {
			cofactor := c.determinant(minor(m, j, i))
			if cofactor == nil {
				return nil
			}
			if (i+j)%2 == 1 {
				cofactor = neg(cofactor)
			}
			cells[i*size+j] = c.cell(div(cofactor, d))
		}
	}
	return seal(&node{op: opMatrix, kids: cells, cols: size})
}

// expandDeterminants replaces det A by its value where it can be expanded.
func (c *comparer) expandDeterminants(n *node) *node {
	if !n.any(func(k *node) bool { return k.op == opFunc && (k.name == "det" || k.name == "tr") }) {
		return n
	}
	return n.rewrite(func(k *node) *node {
		if k.op != opFunc || k.name != "det" && k.name != "tr" {
			return k
		}
		m := c.matrixOf(k.kids[0])
		if m == nil || m.cols*m.cols != len(m.kids) {
			return k
		}
		if k.name == "tr" {
			diagonal := make([]*node, m.cols)
			for i := range diagonal {
				diagonal[i] = m.kids[i*(m.cols+1)]
			}
			return add(diagonal...)
		}
		if d := c.determinant(m); d != nil {
			return d
		}
		return k
	})
}

func (c *comparer) matrices(a, b *node) result {
	if a.cols != b.cols || len(a.kids) != len(b.kids) {
		return different(MethodStructure, "matrices of different shape")
	}
	return c.inOrder(a.kids, b.kids)
}

func (c *comparer) matrixWith(a, b, g, p *node) result {
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
	case len(m.kids) == 1:
		return c.value(m.kids[0], other)
	case (m.cols == 1 || m.cols == len(m.kids)) && (other.op == opTuple || other.op == opBrack):
		return c.inOrder(m.kids, other.kids)
	case other.op == opList || other.op == opSet:
		return c.unordered([]*node{m}, other.kids)
	case isMatrix(other):
		return undecided(MethodStructure, "an operation on matrices that is not evaluated")
	}
	return different(MethodStructure, "a matrix against something else")
}
