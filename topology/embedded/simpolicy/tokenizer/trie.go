package tokenizer

// trie finds the longest piece that a text begins with. Nodes stand in one slice;
// a node's children are a chain of siblings, the root's are a table.
type trie struct {
	root  [256]int32
	nodes []node
}

type node struct {
	first, next int32 // child, sibling; 0 is none
	id          uint32
	b           byte
	end         bool
}

func (t *trie) init() { t.nodes = make([]node, 1) }

func (t *trie) insert(piece string, id uint32) {
	at := t.root[piece[0]]
	if at == 0 {
		at = t.add(node{b: piece[0]})
		t.root[piece[0]] = at
	}
	for i := 1; i < len(piece); i++ {
		child := t.child(at, piece[i])
		if child == 0 {
			child = t.add(node{b: piece[i], next: t.nodes[at].first})
			t.nodes[at].first = child
		}
		at = child
	}
	t.nodes[at].id, t.nodes[at].end = id, true
}

func (t *trie) add(n node) int32 {
	t.nodes = append(t.nodes, n)
	return int32(len(t.nodes) - 1)
}

func (t *trie) child(at int32, b byte) int32 {
	for c := t.nodes[at].first; c != 0; c = t.nodes[c].next {
		if t.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// longest returns the id and length of the longest piece at the start of a text that
// is not empty; length 0 if there is none.
func (t *trie) longest(text string) (id uint32, n int) {
	at := t.root[text[0]]
	for i := 1; at != 0; i++ {
		if t.nodes[at].end {
			id, n = t.nodes[at].id, i
		}
		if i == len(text) {
			break
		}
		at = t.child(at, text[i])
	}
	return id, n
}
