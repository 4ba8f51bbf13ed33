package store

// Tree is the messages of one conversation with their branches.
type Tree struct {
	byID     map[int64]*Message
	children map[int64][]*Message // oldest first; key 0 holds the first messages
}

// NewTree builds the tree of messages, which must be oldest first. A message
// whose parent is missing counts as a first one, so that nothing gets lost.
func NewTree(list []Message) *Tree {
	t := &Tree{byID: map[int64]*Message{}, children: map[int64][]*Message{}}
	for i := range list {
		m := list[i]
		t.Put(m)
	}
	return t
}

// Put adds a message, or replaces the one with its id.
func (t *Tree) Put(m Message) {
	if old := t.byID[m.ID]; old != nil {
		parent := old.Parent
		*old = m
		old.Parent = parent
		return
	}
	if t.byID[m.Parent] == nil {
		m.Parent = 0
	}
	p := &m
	t.byID[m.ID] = p
	t.children[m.Parent] = append(t.children[m.Parent], p)
}

// Message gives the message of an id, or nil.
func (t *Tree) Message(id int64) *Message { return t.byID[id] }

// Len is the number of messages in all branches.
func (t *Tree) Len() int { return len(t.byID) }

// Path gives the branch that ends in leaf, first message first. An unknown
// leaf gives the branch of the newest message.
func (t *Tree) Path(leaf int64) []*Message {
	m := t.byID[leaf]
	if m == nil {
		var newest int64
		for id := range t.byID {
			newest = max(newest, id)
		}
		m = t.byID[newest]
	}
	var path []*Message
	for m != nil {
		path = append(path, m)
		m = t.byID[m.Parent]
	}
	for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
		path[i], path[j] = path[j], path[i]
	}
	return path
}

// Siblings gives the messages that stand in the same place as id, and which
// of them id is.
func (t *Tree) Siblings(id int64) (list []*Message, at int) {
	m := t.byID[id]
	if m == nil {
		return nil, 0
	}
	list = t.children[m.Parent]
	for i, s := range list {
		if s.ID == id {
			at = i
		}
	}
	return list, at
}

// Newest gives the end of the newest branch below id, or id itself.
func (t *Tree) Newest(id int64) int64 {
	for {
		below := t.children[id]
		if len(below) == 0 {
			return id
		}
		id = below[len(below)-1].ID
	}
}
