package token

import "strings"

// EncodeChat renders a conversation and encodes it, with the text that the
// template's rendering has.
//
// The control tokens that the template writes are recognised, those that occur
// in the messages are not: a person who types <|im_end|>, or a web page that a
// tool fetched and that holds it, must not end the turn and begin another in
// somebody's name. Encode with Special on the rendered text cannot tell the two
// apart. BOS is added if the vocabulary asks for it and the template did not
// write it.
func (t *Tokenizer) EncodeChat(tpl *Template, p Prompt) (ids []ID, text string, err error) {
	guard := guardRune(p.Messages)
	if guard != 0 {
		p.Messages = append([]Message(nil), p.Messages...)
		for i := range p.Messages {
			m := &p.Messages[i]
			m.Content = t.guarded(m.Content, guard)
			m.Reasoning = t.guarded(m.Reasoning, guard)
		}
	}
	if text, err = tpl.Render(p); err != nil {
		return nil, "", err
	}
	ids = make([]ID, 0, len(text)/3+2)
	c := t.chains.Get().(*chain)
	defer t.chains.Put(c)
	mark := ""
	if guard != 0 {
		mark = string(guard)
	}
	t.encodeParts(&ids, c, text, true, mark)
	if t.addBOS && (len(ids) == 0 || ids[0] != t.bos) {
		ids = append([]ID{t.bos}, ids...)
	}
	if mark != "" {
		text = strings.ReplaceAll(text, mark, "")
	}
	return ids, text, nil
}

// guardRune finds a character for marks that no message holds: one of those
// that Unicode keeps for inner use (U+FDD0 to U+FDEF). 0 when nothing is left.
func guardRune(messages []Message) rune {
next:
	for r := rune(0xFDD0); r <= 0xFDEF; r++ {
		for _, m := range messages {
			if strings.ContainsRune(m.Content, r) || strings.ContainsRune(m.Reasoning, r) {
				continue next
			}
		}
		return r
	}
	return 0
}

// guarded puts the mark behind the first character of every control token in
// text, so that it is none any more. Tags of reasoning stay: templates cut
// earlier replies at them.
func (t *Tokenizer) guarded(text string, guard rune) string {
	var b strings.Builder
	found := false
	t.special.cut(text, true, func(part string, id ID) {
		if id < 0 || !t.Special(id) || isThinkTag(part) {
			b.WriteString(part)
			return
		}
		found = true
		n := 1
		for n < len(part) && part[n]&0xC0 == 0x80 {
			n++
		}
		b.WriteString(part[:n])
		b.WriteRune(guard)
		b.WriteString(part[n:])
	})
	if !found {
		return text
	}
	return b.String()
}

func isThinkTag(s string) bool {
	for _, pair := range thinkTags {
		if s == pair[0] || s == pair[1] {
			return true
		}
	}
	return false
}
