package cli

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/spf13/cobra"
)

func (p *Program) logitsCommand() *cobra.Command {
	var tokens, out string
	l := loadFlags{kv: "f32"}
	c := &cobra.Command{
		Use: "logits PACK --tokens IDS.json --out LOGITS.f32", Short: "Write the logits of every position of a token sequence",
		Long: "One forward pass over the ids; the file holds 32-bit floats, little endian, positions x vocabulary.\n" +
			"This is a tool for comparing engines, so keys and values are kept as f32 unless --kv says otherwise;\n" +
			"with --device as f16, since cards have no kernels for f32.",
		Args: cobra.ExactArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if tokens == "" || out == "" {
				return usage(c, "--tokens and --out are needed")
			}
			if err := l.check(c); err != nil {
				return err
			}
			if l.device != "" && l.device != "cpu" && !c.Flags().Changed("kv") {
				l.kv = "f16" // what cards keep; with others attention would stay with the CPU
			}
			pack, _, err := p.open(args[0])
			if err != nil {
				return err
			}
			defer pack.Close()
			tok, err := pack.Tokenizer()
			vocab := math.MaxInt32 // a pack without tokenizer still has logits; the engine checks ids
			if err == nil {
				vocab = tok.Len()
			}
			ids, err := p.readIDs(tokens, vocab)
			if err != nil {
				return err
			}
			if len(ids) == 0 {
				return errors.New("the list of token ids is empty")
			}
			if l.context == 0 {
				l.context = len(ids)
			}
			o := l.options()
			if err := p.place(pack, &l, &o); err != nil {
				return err
			}
			m, s, err := load(c.Context(), pack, o)
			if err != nil {
				return err
			}
			defer m.Close()
			defer s.Close()
			logits, err := s.Logits(c.Context(), ids)
			if err != nil {
				return err
			}
			if err := writeFloats(p.Out, out, logits); err != nil {
				return err
			}
			sum, err := checked(m)
			if sum != "" {
				fmt.Fprintln(p.Err, "check:", sum)
			}
			return err
		},
	}
	l.add(c)
	c.Flags().StringVar(&tokens, "tokens", "", "file with a JSON array of token ids; - is standard input")
	c.Flags().StringVar(&out, "out", "", "file to write; - is standard output")
	return c
}

func writeFloats(stdout io.Writer, name string, v []float32) error {
	w := stdout
	if name != "-" {
		f, err := os.Create(name)
		if err != nil {
			return fmt.Errorf("write logits: %w", err)
		}
		defer f.Close()
		w = f
	}
	bw := bufio.NewWriterSize(w, 1<<20)
	var b [4]byte
	for _, x := range v {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		bw.Write(b[:])
	}
	if err := bw.Flush(); err != nil {
		return fmt.Errorf("write logits: %w", err)
	}
	if f, ok := w.(*os.File); ok && name != "-" {
		if err := f.Close(); err != nil {
			return fmt.Errorf("write logits: %w", err)
		}
	}
	return nil
}
