package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

func kernelName() string { return quant.Active().String() }

// kernelLevels names what this processor can run, slowest first.
func kernelLevels() (names []string) {
	for _, l := range quant.Levels() {
		names = append(names, l.String())
	}
	return names
}

// useKernels makes a level the one in use, so that each can be measured on one
// machine; "" leaves the best.
func useKernels(name string) (undo func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	for _, l := range quant.Levels() {
		if l.String() == name {
			return quant.Use(l)
		}
	}
	return nil, fmt.Errorf("got %q, want one that this processor has: %s", name, strings.Join(kernelLevels(), ", "))
}

func (p *Program) tokenizeCommand() *cobra.Command {
	var special, bos bool
	c := &cobra.Command{
		Use: "tokenize PACK", Short: "Turn text on standard input into a JSON array of token ids",
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			tok, done, err := p.tokenizer(args[0])
			if err != nil {
				return err
			}
			defer done()
			text, err := p.readInput("-")
			if err != nil {
				return fmt.Errorf("read standard input: %w", err)
			}
			ids := tok.Encode(string(text), token.Options{Special: special, AddBOS: bos})
			if ids == nil {
				ids = []token.ID{}
			}
			return json.NewEncoder(p.Out).Encode(ids)
		},
	}
	c.Flags().BoolVar(&special, "special", false, "recognise the texts of control tokens, such as <|im_start|>")
	c.Flags().BoolVar(&bos, "bos", false, "add the begin and end tokens that the vocabulary asks for")
	return c
}

func (p *Program) detokenizeCommand() *cobra.Command {
	special := true
	c := &cobra.Command{
		Use: "detokenize PACK", Short: "Turn a JSON array of token ids on standard input into text",
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			tok, done, err := p.tokenizer(args[0])
			if err != nil {
				return err
			}
			defer done()
			ids, err := p.readIDs("-", tok.Len())
			if err != nil {
				return err
			}
			_, err = p.Out.Write(tok.Decode(ids, special))
			return err
		},
	}
	c.Flags().BoolVar(&special, "special", true, "print the texts of control tokens")
	return c
}

func (p *Program) tokenizer(arg string) (*token.Tokenizer, func(), error) {
	pack, _, err := p.open(arg)
	if err != nil {
		return nil, nil, err
	}
	tok, err := pack.Tokenizer()
	if err != nil {
		pack.Close()
		return nil, nil, err
	}
	return tok, func() { pack.Close() }, nil
}

// readIDs reads a JSON array of ids below vocab.
func (p *Program) readIDs(name string, vocab int) ([]token.ID, error) {
	b, err := p.readInput(name)
	if err != nil {
		return nil, fmt.Errorf("read token ids: %w", err)
	}
	var in []*int64 // a null is no number
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, fmt.Errorf("read token ids: want a JSON array of numbers: %w", err)
	}
	ids := make([]token.ID, len(in))
	for i, id := range in {
		if id == nil {
			return nil, fmt.Errorf("read token ids: want a JSON array of numbers: number %d is null", i)
		}
		if *id < 0 || *id >= int64(vocab) {
			return nil, fmt.Errorf("token %d is %d, the vocabulary has %d", i, *id, vocab)
		}
		ids[i] = token.ID(*id)
	}
	return ids, nil
}
