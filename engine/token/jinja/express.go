package jinja

import "slices"

// tuple reads expressions with commas between them; several are a tuple.
// conditional allows x if y else z, which a for loop has another use for.
func (p *parser) tuple(conditional bool) expr {
	one := p.expression
	if !conditional {
		one = p.or
	}
	line := p.line()
	first := one()
	if p.at(tOp, ",") == nil {
		return first
	}
	items := []expr{first}
	for p.take(tOp, ",") != nil {
		if p.at(tCloseStmt) != nil || p.at(tCloseOut) != nil || p.at(tOp, ")", "=") != nil {
			break
		}
		items = append(items, one())
	}
	return &listExpr{line: line, items: items, tuple: true}
}

// expression reads x if y else z.
func (p *parser) expression() expr {
	defer p.enter()()
	x := p.or()
	links := 0
	for p.at(tName, "if") != nil {
		p.link(&links)
		t := p.next()
		n := &condExpr{line: t.line, yes: x, cond: p.or()}
		if p.take(tName, "else") != nil {
			n.no = p.expression()
		}
		x = n
	}
	return x
}

// binary reads a chain of operators of one rank.
func (p *parser) binary(k kind, operand func() expr, ops ...string) expr {
	x := operand()
	links := 0
	for {
		t := p.take(k, ops...)
		if t == nil {
			return x
		}
		p.link(&links)
		x = &binaryExpr{line: t.line, op: t.text, a: x, b: operand()}
	}
}

func (p *parser) or() expr  { return p.binary(tName, p.and, "or") }
func (p *parser) and() expr { return p.binary(tName, p.not, "and") }

func (p *parser) not() expr {
	if t := p.take(tName, "not"); t != nil {
		defer p.enter()()
		return &unaryExpr{line: t.line, op: "not", x: p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	first := p.sum()
	var n *compareExpr
	links := 0
	for {
		t := p.peek()
		op := ""
		switch {
		case p.take(tOp, "==", "!=", "<", ">", "<=", ">=") != nil, p.take(tName, "in") != nil:
			op = t.text
		case t.kind == tName && t.text == "not" && p.tokens[p.pos+1].kind == tName && p.tokens[p.pos+1].text == "in":
			p.pos += 2
			op = "not in"
		default:
			if n == nil {
				return first
			}
			return n
		}
		p.link(&links)
		if n == nil {
			n = &compareExpr{line: t.line, first: first}
		}
		n.ops = append(n.ops, op)
		n.rest = append(n.rest, p.sum())
	}
}

func (p *parser) sum() expr     { return p.binary(tOp, p.concat, "+", "-") }
func (p *parser) concat() expr  { return p.binary(tOp, p.product, "~") }
func (p *parser) product() expr { return p.binary(tOp, p.power, "*", "/", "//", "%") }
func (p *parser) power() expr   { return p.binary(tOp, func() expr { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) expr {
	var x expr
	if t := p.take(tOp, "-", "+"); t != nil {
		defer p.enter()()
		x = &unaryExpr{line: t.line, op: t.text, x: p.unary(false)}
	} else {
		x = p.postfix(p.primary())
	}
	if filters {
		x = p.filters(x)
	}
	return x
}

// postfix reads .name [index] and (arguments).
func (p *parser) postfix(x expr) expr {
	links := 0
	for {
		t := p.take(tOp, ".", "[", "(")
		if t == nil {
			return x
		}
		p.link(&links)
		switch t.text {
		case ".":
			if a := p.take(tName); a != nil {
				x = &attrExpr{line: t.line, x: x, name: a.text}
			} else if a := p.take(tInt); a != nil {
				x = &itemExpr{line: t.line, x: x, key: &literal{a.num}}
			} else {
				fail(p.line(), "expected the name of an attribute, found %s", p.describe())
			}
		case "[":
			x = p.subscript(t.line, x)
		default:
			p.pos--
			c := &callExpr{line: t.line, f: x}
			p.arguments(c)
			x = c
		}
	}
}

// subscript reads what follows [: a key, or from:to:step.
func (p *parser) subscript(line int, x expr) expr {
	var part [3]expr
	n, colons := 0, 0
	for p.take(tOp, "]") == nil {
		if p.take(tOp, ":") != nil {
			if colons++; colons > 2 {
				fail(p.line(), "a slice has at most two colons")
			}
			n = colons
			continue
		}
		if part[n] != nil {
			fail(p.line(), "expected \"]\", found %s", p.describe())
		}
		part[n] = p.tuple(true)
	}
	if colons > 0 {
		return &sliceExpr{line: line, x: x, from: part[0], to: part[1], step: part[2]}
	}
	if part[0] == nil {
		fail(line, "a subscript is empty")
	}
	return &itemExpr{line: line, x: x, key: part[0]}
}

// arguments reads (a, b, name=c, *list, **dict) into a call.
func (p *parser) arguments(c *callExpr) {
	p.must(tOp, "(")
	for first := true; p.take(tOp, ")") == nil; first = false {
		if !first {
			p.must(tOp, ",")
			if p.take(tOp, ")") != nil {
				return
			}
		}
		switch {
		case p.take(tOp, "*") != nil:
			c.spread = p.expression()
		case p.take(tOp, "**") != nil:
			c.spreadNamed = p.expression()
		case p.at(tName) != nil && p.tokens[p.pos+1].kind == tOp && p.tokens[p.pos+1].text == "=":
			name := p.next().text
			p.pos++
			if slices.Contains(c.names, name) {
				fail(p.line(), "argument %s is given twice", name)
			}
			c.names = append(c.names, name)
			c.named = append(c.named, p.expression())
		default:
			if len(c.names) > 0 {
				fail(p.line(), "an argument without a name follows one with a name")
			}
			c.args = append(c.args, p.expression())
		}
	}
}

// filters reads |filter, is test and, behind those, calls.
func (p *parser) filters(x expr) expr {
	links := 0
	for {
		p.link(&links)
		switch {
		case p.at(tOp, "|") != nil:
			x = p.filterChain(x)
		case p.at(tName, "is") != nil:
			x = p.test(x)
		case p.at(tOp, "(") != nil:
			c := &callExpr{line: p.line(), f: x}
			p.arguments(c)
			x = c
		default:
			return x
		}
	}
}

// filterChain reads name(arguments) and |name(arguments) behind. x is nil for
// a filter statement, which begins without a bar.
func (p *parser) filterChain(x expr) expr {
	if x == nil {
		x = &heldExpr{}
	} else {
		p.must(tOp, "|")
	}
	links := 0
	for {
		p.link(&links)
		t := p.take(tName)
		if t == nil {
			fail(p.line(), "expected the name of a filter, found %s", p.describe())
		}
		f, ok := filters[t.text]
		if !ok {
			fail(t.line, "unknown filter %q", t.text)
		}
		c := &callExpr{line: t.line}
		if p.at(tOp, "(") != nil {
			p.arguments(c)
		}
		x = &filterExpr{line: t.line, name: t.text, apply: f, x: x, call: c}
		if p.take(tOp, "|") == nil {
			return x
		}
	}
}

// test reads is [not] name, with arguments in brackets or one without.
func (p *parser) test(x expr) expr {
	line := p.next().line
	n := &testExpr{line: line, x: x, call: &callExpr{line: line}}
	n.negate = p.take(tName, "not") != nil
	t := p.take(tName)
	if t == nil {
		fail(p.line(), "expected the name of a test, found %s", p.describe())
	}
	n.name = t.text
	var ok bool
	if n.apply, ok = tests[t.text]; !ok {
		fail(t.line, "unknown test %q", t.text)
	}
	switch {
	case p.at(tOp, "(") != nil:
		p.arguments(n.call)
	case p.at(tName) != nil && p.at(tName, "else", "or", "and", "if", "is", "in", "not", "recursive") == nil,
		p.at(tString) != nil, p.at(tInt) != nil, p.at(tFloat) != nil, p.at(tOp, "[", "{") != nil:
		n.call.args = []expr{p.postfix(p.primary())}
	}
	return n
}

// primary reads a name, a literal, or something in brackets.
func (p *parser) primary() expr {
	defer p.enter()()
	t := p.next()
	switch t.kind {
	case tName:
		switch t.text {
		case "true", "True":
			return &literal{true}
		case "false", "False":
			return &literal{false}
		case "none", "None":
			return &literal{nil}
		}
		return &nameExpr{line: t.line, name: t.text}
	case tString:
		s := t.text
		for {
			more := p.take(tString)
			if more == nil {
				return &literal{s}
			}
			s += more.text
		}
	case tInt, tFloat:
		return &literal{t.num}
	case tOp:
		switch t.text {
		case "(":
			if p.take(tOp, ")") != nil {
				return &listExpr{line: t.line, tuple: true}
			}
			x := p.tuple(true)
			p.must(tOp, ")")
			return x
		case "[":
			n := &listExpr{line: t.line}
			for p.take(tOp, "]") == nil {
				if len(n.items) > 0 {
					p.must(tOp, ",")
					if p.take(tOp, "]") != nil {
						break
					}
				}
				n.items = append(n.items, p.expression())
			}
			return n
		case "{":
			n := &dictExpr{line: t.line}
			for p.take(tOp, "}") == nil {
				if len(n.keys) > 0 {
					p.must(tOp, ",")
					if p.take(tOp, "}") != nil {
						break
					}
				}
				n.keys = append(n.keys, p.expression())
				p.must(tOp, ":")
				n.values = append(n.values, p.expression())
			}
			return n
		}
	}
	if t.kind != tEnd {
		p.pos--
	}
	fail(t.line, "unexpected %s", p.describe())
	return nil
}
