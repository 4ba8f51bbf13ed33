package token

import (
	"fmt"
	"sort"
	"strings"
)

// splitter cuts text into words, the parts inside which BPE merges. Together
// the words are the text. It is one of the stages below, or several in a row,
// each cutting what the one before it made.
type splitter func(s string, yield func(word string))

// step matches at offset i of s, which is inside s: the end of the match, or
// -1 when nothing matches there.
type step func(s string, i int) int

// each cuts s into the matches of a step and what lies between them.
func each(match step) splitter {
	return func(s string, yield func(string)) {
		gap := 0
		for i := 0; i < len(s); {
			end := match(s, i)
			if end < 0 {
				_, n := decode(s[i:])
				i += n
				continue
			}
			if gap < i {
				yield(s[gap:i])
			}
			yield(s[i:end])
			i, gap = end, end
		}
		if gap < len(s) {
			yield(s[gap:])
		}
	}
}

// stages runs splitters in a row.
func stages(list ...splitter) splitter {
	if len(list) == 1 {
		return list[0]
	}
	rest := stages(list[1:]...)
	return func(s string, yield func(string)) {
		list[0](s, func(part string) { rest(part, yield) })
	}
}

// pre is what is known of a pre-tokenizer besides its pattern.
type pre struct {
	split        splitter
	ignoreMerges bool // a word that is a token stays whole even if merges would not lead there
	addBOS       bool // unless the file says otherwise
	exact        bool // Decode takes no spaces out
	lines        bool // merges run over whole lines of plain UTF-8, spaces escaped
}

// presets lists the pre-tokenizers by the names of tokenizer.ggml.pre. Names,
// patterns and properties are those of llama.cpp (src/llama-vocab.cpp).
var presets = func() map[string]pre {
	list := map[string]pre{}
	put := func(p pre, names ...string) {
		for _, n := range names {
			list[n] = p
		}
	}
	llama3 := each((&pattern{fold: true, letters: letter, digits: 3, tail: "\r\n"}).next)
	qwen2 := each((&pattern{fold: true, letters: letter, digits: 1, tail: "\r\n"}).next)
	digit, digits3 := each(oneNumber), each(numbers(3))
	gpt2 := each(gpt2Next)
	deepseek3 := stages(digits3, each(runOf(inRanges(han, kana))), each((&pattern{letters: letter | mark, positive: true, punctWord: true, tail: "\r\n"}).next))

	put(pre{split: stages(each(runOf(punctAnd("$+<=>^~|"))), gpt2, each(runOfClass(number)), each(threeDigits))}, "default")
	put(pre{split: llama3, ignoreMerges: true, addBOS: true},
		"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano")
	put(pre{split: llama3}, "dbrx", "smaug-bpe", "glm4", "chatglm-bpe")
	put(pre{split: stages(digits3, each((&pattern{fold: true, letters: letter, tail: "\r\n"}).next)), ignoreMerges: true}, "minicpm5")
	put(pre{split: qwen2, exact: true}, "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "hunyuan", "solar-open", "grok-2")
	put(pre{split: qwen2}, "stablelm2", "megrez")
	put(pre{split: stages(each(lineOrBreaks), qwen2), exact: true}, "laguna")
	put(pre{split: each((&pattern{noContraction: true, letters: letter, digits: 1, tail: "\r\n"}).next), exact: true}, "ufakzeka")
	put(pre{split: each((&pattern{fold: true, letters: letter | mark, digits: 1, tail: "\r\n"}).next), exact: true}, "qwen35")
	put(pre{split: qwen2, exact: true}, "bailingmoe", "bailingmoe2", "llada-moe")
	put(pre{split: each((&pattern{fold: true, letters: letter, digits: 1}).next), exact: true}, "seed-coder")
	put(pre{split: each((&pattern{fold: true, letters: letter, cased: true, digits: 3, tail: "\r\n/"}).next), exact: true},
		"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2")
	put(pre{split: each((&pattern{noContraction: true, letters: letter, cased: true, digits: 1, tail: "\r\n/"}).next), ignoreMerges: true, addBOS: true, exact: true}, "tekken")
	put(pre{split: deepseek3, exact: true}, "deepseek-v3", "hunyuan-dense", "hy_v4", "joyai-llm")
	put(pre{split: stages(each(oneBreak), each(spaceAndRun(func(r rune, _ class) bool { return latin(r) })),
		each(spaceAndRun(func(r rune, _ class) bool { return wideASCII(r) })), trailingSpace, each(runOf(inRanges(hanAndMore))), each(runOfClass(number))), exact: true}, "deepseek-llm")
	put(pre{split: stages(each(oneBreak), each(spaceAndRun(func(_ rune, k class) bool { return k&letter != 0 })),
		each(spaceAndRun(func(_ rune, k class) bool { return k&punct != 0 })), each(runOf(inRanges(hanAndMore))), digit), exact: true}, "deepseek-coder")
	put(pre{split: stages(digit, gpt2), exact: true}, "smollm", "command-r")
	put(pre{split: stages(digit, gpt2)}, "starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2")
	put(pre{split: gpt2}, "gpt-2", "phi-2", "jina-es", "jina-de", "gigachat", "jina-v2-es", "jina-v2-de", "a.x-4.0", "mellum", "modern-bert",
		"mpt", "olmo", "jais", "exaone4", "jina-v1-en", "jina-v2-code", "roberta-bpe")
	put(pre{split: gpt2, exact: true}, "trillion", "granite-docling")
	put(pre{split: stages(each(runOf(punctAnd("$+<=>^~|`"))), gpt2, each(threeDigits))}, "falcon")
	put(pre{split: each(bloomNext)}, "bloom", "gpt3-finnish")
	put(pre{split: each(bloomNext), exact: true}, "poro-chat")
	put(pre{split: stages(each(bloomNext), digit), exact: true}, "viking")
	put(pre{split: each(lineOrBreaks), lines: true, addBOS: true}, "gemma4")
	put(pre{split: each(lineOrBreaks), lines: true, exact: true}, "sarvam-moe")
	return list
}()

// findPre looks a pre-tokenizer up. An unknown one is refused: with a wrong
// pattern a model still talks, only worse, and nobody finds out why.
func findPre(name string) (pre, error) {
	if name == "" {
		name = "default"
	}
	if p, ok := presets[name]; ok {
		return p, nil
	}
	var known []string
	for n := range presets {
		known = append(known, n)
	}
	sort.Strings(known)
	return pre{}, fmt.Errorf("unknown pre-tokenizer %q, known are %s: a newer version of this program may know it", name, strings.Join(known, ", "))
}
