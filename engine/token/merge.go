package token

// never is the priority of a pair that does not merge.
const never = ^uint32(0)

// pairer looks a pair of neighbours up: the priority of merging nodes i and j
// of c (lower goes first, never for not at all) and the symbol they become.
type pairer interface {
	pair(c *chain, i, j int32) (priority uint32, symbol int32)
}

// chain is a word being merged: a linked list of symbols. The same code serves
// merging by rank and by score. Its memory is used again for the next word.
type chain struct {
	text  string
	start []int32  // offset of node i in text; one more for the end
	sym   []int32  // symbol of node i
	next  []int32  // node after i, -1 at the end; of a node that was merged away, gone
	prev  []int32  // node before i, -1 at the start
	prio  []uint32 // priority of merging i with its next
	res   []int32  // symbol that would come of it
	heap  []uint64 // priority and node, for long words
}

// gone marks a node that became part of the one before it.
const gone = -2

// reset starts a new word.
func (c *chain) reset(text string) {
	c.text = text
	c.start, c.sym, c.next, c.prev, c.prio, c.res = c.start[:0], c.sym[:0], c.next[:0], c.prev[:0], c.prio[:0], c.res[:0]
}

// add appends a symbol that begins at an offset of the text.
func (c *chain) add(start int, sym int32) {
	i := int32(len(c.sym))
	c.start = append(c.start, int32(start))
	c.sym = append(c.sym, sym)
	c.next = append(c.next, i+1)
	c.prev = append(c.prev, i-1)
}

// end is the offset where node i ends.
func (c *chain) end(i int32) int32 {
	if n := c.next[i]; n >= 0 {
		return c.start[n]
	}
	return int32(len(c.text))
}

// shortWord is the number of symbols up to which a scan over all pairs beats a heap.
const shortWord = 24

// merge joins neighbours until nothing joins: always the pair of the lowest
// priority, of equal ones the leftmost.
func (c *chain) merge(p pairer) {
	n := len(c.sym)
	if n == 0 {
		return
	}
	c.next[n-1] = -1
	for i := range n {
		prio, res := never, int32(-1)
		if i+1 < n {
			prio, res = p.pair(c, int32(i), int32(i+1))
		}
		c.prio = append(c.prio, prio)
		c.res = append(c.res, res)
	}
	if n <= shortWord {
		for {
			best, at := never, int32(-1)
			for i := int32(0); i >= 0; i = c.next[i] {
				if c.prio[i] < best {
					best, at = c.prio[i], i
				}
			}
			if at < 0 {
				return
			}
			c.join(p, at)
		}
	}
	c.heap = c.heap[:0]
	for i, prio := range c.prio {
		if prio != never {
			c.heap = append(c.heap, uint64(prio)<<32|uint64(i))
		}
	}
	for i := len(c.heap)/2 - 1; i >= 0; i-- {
		c.down(i)
	}
	for len(c.heap) > 0 {
		top := c.heap[0]
		last := len(c.heap) - 1
		c.heap[0] = c.heap[last]
		c.heap = c.heap[:last]
		c.down(0)
		i := int32(uint32(top))
		// An entry counts only while its node still has that priority.
		if c.next[i] == gone || c.prio[i] != uint32(top>>32) {
			continue
		}
		c.join(p, i)
		c.push(i)
		if h := c.prev[i]; h >= 0 {
			c.push(h)
		}
	}
}

// join merges node i with the one after it and looks its new pairs up.
func (c *chain) join(p pairer, i int32) {
	j := c.next[i]
	c.sym[i] = c.res[i]
	c.next[i] = c.next[j]
	c.next[j] = gone
	c.prio[j] = never
	if k := c.next[i]; k >= 0 {
		c.prev[k] = i
		c.prio[i], c.res[i] = p.pair(c, i, k)
	} else {
		c.prio[i] = never
	}
	if h := c.prev[i]; h >= 0 {
		c.prio[h], c.res[h] = p.pair(c, h, i)
	}
}

func (c *chain) push(i int32) {
	if c.prio[i] == never {
		return
	}
	c.heap = append(c.heap, uint64(c.prio[i])<<32|uint64(i))
	h := c.heap
	for k := len(h) - 1; k > 0; {
		up := (k - 1) / 2
		if h[up] <= h[k] {
			return
		}
		h[up], h[k] = h[k], h[up]
		k = up
	}
}

// down restores the heap below k.
func (c *chain) down(k int) {
	h := c.heap
	for {
		child := 2*k + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[k] <= h[child] {
			return
		}
		h[k], h[child] = h[child], h[k]
		k = child
	}
}
