package jinja

import "slices"

// parser makes a tree of lexemes.
type parser struct {
	tokens []lexeme
	pos    int
	nest   int
	loops  int // loops around this place, for break and continue
}

func (p *parser) peek() *lexeme { return &p.tokens[p.pos] }

func (p *parser) line() int { return p.peek().line }

// next takes a lexeme; the last one, tEnd, stays.
func (p *parser) next() *lexeme {
	t := &p.tokens[p.pos]
	if t.kind != tEnd {
		p.pos++
	}
	return t
}

// at returns the next lexeme if it is of a kind and, when given, one of these texts.
func (p *parser) at(k kind, texts ...string) *lexeme {
	t := p.peek()
	if t.kind != k || len(texts) > 0 && !slices.Contains(texts, t.text) {
		return nil
	}
	return t
}

// take is at, and takes the lexeme.
func (p *parser) take(k kind, texts ...string) *lexeme {
	t := p.at(k, texts...)
	if t != nil {
		p.pos++
	}
	return t
}

func (p *parser) must(k kind, text string) *lexeme {
	if t := p.take(k, text); t != nil {
		return t
	}
	fail(p.line(), "expected %q, found %s", text, p.describe())
	return nil
}

func (p *parser) describe() string {
	switch t := p.peek(); t.kind {
	case tEnd:
		return "the end of the template"
	case tText:
		return "text"
	case tString:
		return "a string"
	default:
		if t.text == "" {
			return "nothing"
		}
		return "\"" + t.text + "\""
	}
}

// enter counts nesting; call the result when leaving.
func (p *parser) enter() func() {
	if p.nest++; p.nest > maxNest {
		tooMuch(p.line(), "expressions or statements are nested more than %d deep", maxNest)
	}
	return func() { p.nest-- }
}

// maxLinks bounds chains such as a + b + c, which nest when they are evaluated.
const maxLinks = 1000

func (p *parser) link(n *int) {
	if *n++; *n > maxLinks {
		tooMuch(p.line(), "an expression has more than %d parts", maxLinks)
	}
}

// statements reads text and tags up to the end, or up to a statement whose
// name is one of ends, which is left with its name next.
func (p *parser) statements(ends ...string) []statement {
	defer p.enter()()
	var list []statement
	for {
		switch t := p.peek(); t.kind {
		case tText:
			p.pos++
			list = append(list, textNode(t.text))
		case tOpenOut:
			p.pos++
			n := &outNode{line: t.line, x: p.tuple(true)}
			p.must(tCloseOut, "}}")
			list = append(list, n)
		case tOpenStmt:
			p.pos++
			name := p.at(tName)
			if name == nil {
				fail(p.line(), "expected the name of a statement, found %s", p.describe())
			}
			if slices.Contains(ends, name.text) {
				return list
			}
			p.pos++
			if s := p.statement(name); s != nil {
				list = append(list, s)
			}
		default:
			if len(ends) > 0 {
				fail(t.line, "expected %q before the end of the template", ends[len(ends)-1])
			}
			return list
		}
	}
}

// end reads the name of an end tag and closes it.
func (p *parser) end(name string) {
	p.must(tName, name)
	p.close()
}

func (p *parser) close() { p.must(tCloseStmt, "%}") }

func (p *parser) statement(name *lexeme) statement {
	switch name.text {
	case "if":
		return p.ifStatement(name.line)
	case "for":
		return p.forStatement(name.line)
	case "set":
		return p.setStatement(name.line)
	case "macro":
		return p.macroStatement(name.line)
	case "call":
		return p.callStatement(name.line)
	case "filter":
		f := p.filterChain(nil)
		p.close()
		n := &filterNode{line: name.line, chain: f, body: p.statements("endfilter")}
		p.end("endfilter")
		return n
	case "break", "continue":
		if p.loops == 0 {
			fail(name.line, "%s outside of a loop", name.text)
		}
		p.close()
		return jumpNode(name.text == "break")
	case "generation":
		// It marks the assistant's words for training; they are rendered as they are.
		p.close()
		n := &blockNode{body: p.statements("endgeneration")}
		p.end("endgeneration")
		return n
	case "with":
		n := &withNode{line: name.line}
		for p.at(tCloseStmt) == nil {
			if len(n.names) > 0 {
				p.must(tOp, ",")
			}
			n.names = append(n.names, p.target())
			p.must(tOp, "=")
			n.values = append(n.values, p.expression())
		}
		p.close()
		n.body = p.statements("endwith")
		p.end("endwith")
		return n
	case "do":
		n := &doNode{line: name.line, x: p.tuple(true)}
		p.close()
		return n
	}
	fail(name.line, "unknown statement %q", name.text)
	return nil
}

func (p *parser) ifStatement(line int) statement {
	n := &ifNode{line: line}
	for {
		cond := p.tuple(false)
		p.close()
		body := p.statements("elif", "else", "endif")
		n.arms = append(n.arms, arm{cond, body})
		switch {
		case p.take(tName, "elif") != nil:
		case p.take(tName, "else") != nil:
			p.close()
			n.other = p.statements("endif")
			p.end("endif")
			return n
		default:
			p.end("endif")
			return n
		}
	}
}

func (p *parser) forStatement(line int) statement {
	n := &forNode{line: line, target: p.target()}
	p.must(tName, "in")
	n.over = p.tuple(false)
	if p.take(tName, "if") != nil {
		n.cond = p.expression()
	}
	if p.take(tName, "recursive") != nil {
		n.recursive = true
	}
	p.close()
	p.loops++
	n.body = p.statements("else", "endfor")
	p.loops--
	if p.take(tName, "else") != nil {
		p.close()
		n.other = p.statements("endfor")
	}
	p.end("endfor")
	return n
}

// target reads what a value is assigned to: a name, ns.name, or several.
func (p *parser) target() target {
	defer p.enter()()
	var list []target
	line := p.line()
	for {
		if p.take(tOp, "(") != nil {
			list = append(list, p.target())
			p.must(tOp, ")")
		} else {
			t := p.take(tName)
			if t == nil {
				fail(p.line(), "expected a name to assign to, found %s", p.describe())
			}
			one := target{line: t.line, name: t.text}
			if p.take(tOp, ".") != nil {
				a := p.take(tName)
				if a == nil {
					fail(p.line(), "expected the name of an attribute, found %s", p.describe())
				}
				one.attr = a.text
			}
			list = append(list, one)
		}
		if p.take(tOp, ",") == nil {
			break
		}
		if p.at(tName) == nil && p.at(tOp, "(") == nil || p.at(tName, "in") != nil {
			return target{line: line, many: list} // a, with nothing behind the comma
		}
	}
	if len(list) == 1 {
		return list[0]
	}
	return target{line: line, many: list}
}

func (p *parser) setStatement(line int) statement {
	t := p.target()
	if p.take(tOp, "=") != nil {
		n := &setNode{line: line, target: t, x: p.tuple(true)}
		p.close()
		return n
	}
	n := &setBlockNode{line: line, target: t}
	if p.at(tOp, "|") != nil {
		n.chain = p.filterChain(&heldExpr{})
	}
	p.close()
	n.body = p.statements("endset")
	p.end("endset")
	return n
}

// parameters reads the parameters of a macro.
func (p *parser) parameters() (list []parameter) {
	p.must(tOp, "(")
	for p.take(tOp, ")") == nil {
		if len(list) > 0 {
			p.must(tOp, ",")
		}
		t := p.take(tName)
		if t == nil {
			fail(p.line(), "expected the name of a parameter, found %s", p.describe())
		}
		q := parameter{name: t.text}
		if p.take(tOp, "=") != nil {
			q.value = p.expression()
		} else if len(list) > 0 && list[len(list)-1].value != nil {
			fail(t.line, "parameter %s without a default follows one with a default", t.text)
		}
		list = append(list, q)
	}
	return list
}

func (p *parser) macroStatement(line int) statement {
	t := p.take(tName)
	if t == nil {
		fail(p.line(), "expected the name of the macro, found %s", p.describe())
	}
	n := &macroNode{line: line, name: t.text, params: p.parameters()}
	p.close()
	n.body = p.function("endmacro")
	return n
}

// function reads a body in which loops around it do not count.
func (p *parser) function(end string) []statement {
	loops := p.loops
	p.loops = 0
	body := p.statements(end)
	p.loops = loops
	p.end(end)
	return body
}

func (p *parser) callStatement(line int) statement {
	n := &callNode{line: line}
	if p.at(tOp, "(") != nil {
		n.params = p.parameters()
	}
	x, ok := p.expression().(*callExpr)
	if !ok {
		fail(line, "call needs a call of a macro")
	}
	n.x = x
	p.close()
	n.body = p.function("endcall")
	return n
}
