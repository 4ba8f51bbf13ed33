package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"outcrop/engine/catalog"
)

func (p *Program) packsCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "packs", Short: "List, add, look into, remove and fetch packs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.listPacks(false) },
	}
	c.AddCommand(p.packsList(), p.packsAdd(), p.packsInspect(), p.packsRemove(), p.packsRename(), p.packsGet())
	return c
}

// listed is one entry of `packs list --json`.
type listed struct {
	catalog.Entry
	Bytes  int64          `json:"bytes"`
	Health catalog.Health `json:"health"`
}

func (p *Program) packsList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the packs that are known", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return p.listPacks(asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *Program) listPacks(asJSON bool) error {
	list, err := p.packs().List()
	if err != nil {
		fmt.Fprintln(p.Err, "outcrop:", err)
	}
	out := []listed{}
	for _, e := range list {
		out = append(out, listed{e, e.Size(), catalog.Check(e)})
	}
	if asJSON {
		if jerr := p.printJSON(out); jerr != nil {
			return jerr
		}
	} else {
		rows := [][]string{{"NAME", "FAMILY", "SIZE", "FILES", "WHERE"}}
		for _, e := range out {
			rows = append(rows, []string{visibleLine(e.Name), visibleLine(cmp.Or(e.Arch, "unknown family")), size(e.Bytes), fmt.Sprint(len(e.Files)), visibleLine(e.Path)})
		}
		table(p.Out, rows)
		for _, e := range out {
			if e.Health.Status != catalog.Good {
				fmt.Fprintf(p.Out, "\n%s: %s\n", visibleLine(e.Name), visible(e.Health.Text))
			}
		}
	}
	if err != nil {
		return errSilent
	}
	return nil
}

func (p *Program) packsAdd() *cobra.Command {
	var name string
	var asJSON bool
	c := &cobra.Command{
		Use: "add PATH", Short: "Put a GGUF file, or all packs of a folder, on the list; nothing is copied", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			es, err := p.packs().Add(args[0], name)
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(es)
			}
			for _, e := range es {
				fmt.Fprintf(p.Out, "%s: %s, %s, %d file(s), used where it lies\n", visibleLine(e.Name), visibleLine(cmp.Or(e.Arch, "unknown family")), size(e.Size()), len(e.Files))
				if e.Note != "" {
					fmt.Fprintln(p.Out, "  "+visible(e.Note))
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "", "name in the list (default: the file's)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *Program) packsRemove() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove"}, Short: "Take a pack off the list; its files stay", Args: cobra.ExactArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(_ *cobra.Command, args []string) error {
			e, err := p.packs().Remove(args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(p.Out, "%s is off the list; its files stay at %s\n", e.Name, filepath.Dir(e.Path))
			return nil
		},
	}
}

func (p *Program) packsRename() *cobra.Command {
	return &cobra.Command{
		Use: "rename OLD NEW", Short: "Give a pack another name in the list", Args: cobra.ExactArgs(2), ValidArgsFunction: p.packNames,
		RunE: func(_ *cobra.Command, args []string) error { return p.packs().Rename(args[0], args[1]) },
	}
}

func (p *Program) packsGet() *cobra.Command {
	var dir, site, name string
	var asJSON, discard bool
	c := &cobra.Command{
		Use: "get [REF]", Short: "Fetch a pack from an address or a model site, with resume and checksum",
		Long: "REF is the address of a GGUF file, owner/name, owner/name:TAG (such as Q4_K_M) or owner/name/FILE.gguf.\n" +
			"Without REF it lists suggestions and unfinished downloads. Ctrl-C pauses; the same command goes on.\n" +
			"An access token for packs behind a licence is read from the variable HF_TOKEN.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if dir == "" {
				dir = catalog.PacksDir()
			}
			d := &catalog.Downloader{Dir: dir, Site: site, Token: os.Getenv("HF_TOKEN")}
			ctx, cancel := signal.NotifyContext(c.Context(), os.Interrupt)
			defer cancel()
			if len(args) == 0 {
				return p.suggest(d, asJSON)
			}
			if discard {
				return d.Discard(args[0])
			}
			return p.get(ctx, d, args[0], name, asJSON)
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder to put packs into (default: the program's own)")
	c.Flags().StringVar(&site, "site", "", "model site for owner/name (default: HF_ENDPOINT, else "+catalog.DefaultSite+")")
	c.Flags().StringVar(&name, "name", "", "name in the list")
	c.Flags().BoolVar(&discard, "discard", false, "delete what an unfinished download of this name left")
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

func (p *Program) suggest(d *catalog.Downloader, asJSON bool) error {
	un, err := d.Unfinished()
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(map[string]any{"known": catalog.KnownPacks, "unfinished": un})
	}
	rows := [][]string{{"PACK", "SIZE", "LICENCE", "REF"}}
	for _, k := range catalog.KnownPacks {
		rows = append(rows, []string{k.Name, fmt.Sprintf("%.1f GB", float64(k.Bytes)/1e9), k.Licence, k.Ref})
	}
	table(p.Out, rows)
	for _, u := range un {
		fmt.Fprintf(p.Out, "\nunfinished: %s, %.2f GB so far; go on with: outcrop packs get %s\n", u.Source.Name, float64(u.Done)/1e9, u.Source.Origin)
	}
	return nil
}

func (p *Program) get(ctx context.Context, d *catalog.Downloader, ref, name string, asJSON bool) error {
	s, err := d.Find(ctx, ref)
	if err != nil {
		return err
	}
	tell := p.downloadLine()
	path, err := d.Get(ctx, s, tell)
	tell(catalog.Progress{})
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return fmt.Errorf("paused; go on with: outcrop packs get %s", ref)
		}
		return err
	}
	es, err := p.packs().AddFrom(path, name, s.Origin)
	if err != nil {
		return err
	}
	if asJSON {
		return p.printJSON(es)
	}
	for _, e := range es {
		fmt.Fprintf(p.Out, "%s: %s, %s, at %s\n", e.Name, e.Arch, size(e.Size()), e.Path)
	}
	return nil
}

// downloadLine shows progress: one line that changes on a terminal, a line
// every ten seconds elsewhere.
func (p *Program) downloadLine() func(catalog.Progress) {
	tty := isTerminal(p.Err)
	var last time.Time
	phase := ""
	return func(g catalog.Progress) {
		if g.Phase == "" {
			if tty {
				fmt.Fprint(p.Err, "\r\x1b[K")
			}
			return
		}
		if !tty && g.Phase == phase && time.Since(last) < 10*time.Second {
			return
		}
		last, phase = time.Now(), g.Phase
		parts := []string{g.Phase, g.File, fmt.Sprintf("%.2f GB", float64(g.Done)/1e9)}
		if g.Total > 0 {
			parts[2] += fmt.Sprintf(" of %.2f (%.0f %%)", float64(g.Total)/1e9, 100*float64(g.Done)/float64(g.Total))
		}
		if g.Rate > 0 && g.Phase == "downloading" {
			parts = append(parts, fmt.Sprintf("%.1f MB/s", g.Rate/1e6))
			if g.Total > g.Done {
				parts = append(parts, (time.Duration(float64(g.Total-g.Done)/g.Rate)*time.Second).Round(time.Second).String()+" left")
			}
		}
		if g.Note != "" {
			parts = append(parts, g.Note)
		}
		line := strings.Join(parts, " · ")
		if tty {
			fmt.Fprint(p.Err, "\r\x1b[K"+line)
		} else {
			fmt.Fprintln(p.Err, line)
		}
	}
}
