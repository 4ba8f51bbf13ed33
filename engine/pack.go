package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
)

// Pack is one model as it lies on disk: a GGUF file or all shards of one.
// Opening reads headers only.
type Pack struct {
	Name string // of the model, or of the file when it has none
	Path string // the file or folder that was given
	Arch string // general.architecture

	file *gguf.File
	size int64 // bytes of all shards

	specOnce sync.Once
	spec     *spec
	specErr  error

	tokOnce sync.Once
	tok     *token.Tokenizer
	tokErr  error
}

// OpenPack opens a GGUF file, any shard of one, or a folder that holds exactly
// one model. An unknown family opens too: [Pack.Info] describes it and [Load]
// refuses it.
func OpenPack(path string) (*Pack, error) {
	file := path
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	if st.IsDir() {
		if file, err = oneModel(path); err != nil {
			return nil, err
		}
	}
	f, err := gguf.Open(file)
	if err != nil {
		return nil, err
	}
	p := &Pack{Path: path, file: f}
	if p.Arch, err = f.Meta().String("general.architecture"); err != nil {
		f.Close()
		return nil, fmt.Errorf("open pack %s: %w", path, err)
	}
	p.Name, _ = f.Meta().String("general.name")
	if p.Name == "" {
		p.Name = packName(file)
	}
	for _, s := range f.Shards() {
		p.size += s.Size
	}
	return p, nil
}

// packName is the name of a file without its ending and shard numbers.
func packName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".gguf")
	if i := strings.LastIndex(name, "-of-"); i > 6 && len(name)-i == 9 && name[i-6] == '-' {
		name = name[:i-6]
	}
	return name
}

// oneModel finds the model in a folder: its only GGUF file, or the first shard
// of its only set. Draft and projector files beside it are told by name.
func oneModel(dir string) (string, error) {
	all, err := filepath.Glob(filepath.Join(globSafe(dir), "*.gguf"))
	if err != nil {
		return "", fmt.Errorf("open pack %s: %w", dir, err)
	}
	models := map[string]string{} // name without shard numbers: first file
	for _, f := range all {
		name := packName(f)
		if strings.HasPrefix(strings.ToLower(filepath.Base(f)), "mmproj") {
			continue
		}
		if have, ok := models[name]; !ok || f < have {
			models[name] = f
		}
	}
	switch len(models) {
	case 0:
		return "", fmt.Errorf("open pack %s: the folder has no .gguf file", dir)
	case 1:
		for _, f := range models {
			return f, nil
		}
	}
	var names []string
	for _, f := range models {
		// Quoted when a line break or the like is in it: this is one sentence.
		name := filepath.Base(f)
		if q := strconv.Quote(name); q != `"`+name+`"` {
			name = q
		}
		names = append(names, name)
	}
	sort.Strings(names)
	return "", fmt.Errorf("open pack %s: the folder has %d models, name one: %s", dir, len(names), strings.Join(names, ", "))
}

// globSafe escapes the characters that mean something in a pattern.
func globSafe(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// Close unmaps the file. A model loaded from the pack must be closed before.
func (p *Pack) Close() error { return p.file.Close() }

// File is the mapped file.
func (p *Pack) File() *gguf.File { return p.file }

// Size is the bytes of all shards.
func (p *Pack) Size() int64 { return p.size }

// specification reads the metadata once.
func (p *Pack) specification() (*spec, error) {
	p.specOnce.Do(func() { p.spec, p.specErr = specOf(p.file.Meta()) })
	return p.spec, p.specErr
}

// Tokenizer makes the tokenizer of the pack, once.
func (p *Pack) Tokenizer() (*token.Tokenizer, error) {
	p.tokOnce.Do(func() {
		v, err := vocabOf(p.file.Meta())
		if err == nil {
			p.tok, err = token.New(v)
		}
		if err != nil {
			p.tokErr = fmt.Errorf("tokenizer of %s: %w", p.Name, err)
		}
	})
	return p.tok, p.tokErr
}

// Template reads the chat template of the pack; a pack without one gets ChatML,
// and the template says so.
func (p *Pack) Template() (*token.Template, error) {
	m := p.file.Meta()
	src, _ := m.String("tokenizer.chat_template")
	var bos, eos string
	if tok, err := p.Tokenizer(); err == nil {
		v, _ := vocabOf(m)
		piece := func(id token.ID) string {
			if id < 0 || int(id) >= tok.Len() {
				return ""
			}
			return string(tok.Piece(id))
		}
		bos, eos = piece(v.BOS), piece(v.EOS)
	}
	t, err := token.NewTemplate(src, bos, eos)
	if err != nil {
		return nil, fmt.Errorf("chat template of %s: %w", p.Name, err)
	}
	return t, nil
}
