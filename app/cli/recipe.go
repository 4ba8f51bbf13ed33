package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// recipeFlags choose a recipe.
type recipeFlags struct {
	root, card, target string
	reported, split    bool
}

func (r *recipeFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&r.root, "root", "", rootHelp)
	f.StringVar(&r.card, "card", "", "PCI address of the card (default: the best one)")
	f.StringVar(&r.target, "for", recipe.Outcrop, "program the recipe is for: "+strings.Join(recipe.Targets(), ", "))
	f.StringVar(&r.target, "target", recipe.Outcrop, "the same as --for")
	f.BoolVar(&r.reported, "as-reported", false, "the lines as the public reports had them")
	f.BoolVar(&r.split, "split", false, "spread the program over all cards, where it can")
}

func (r *recipeFlags) make() (recipe.Recipe, error) {
	m, err := machine(r.root)
	if err != nil {
		return recipe.Recipe{}, err
	}
	return recipe.For(m, r.target, recipe.Options{Card: gpu.PCI(r.card), AsReported: r.reported, Split: r.split})
}

func (p *Program) recipeCommand() *cobra.Command {
	var f recipeFlags
	var asJSON bool
	var format string
	c := &cobra.Command{
		Use: "recipe", Short: "Show the environment this machine's card needs, line by line with why", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := f.make()
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(r)
			}
			if format != "" {
				s, err := r.Export(format)
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(p.Out, s)
				return err
			}
			p.printRecipe(r)
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&format, "format", "", "write it as "+strings.Join(recipe.Formats(), ", "))
	return c
}

func (p *Program) printRecipe(r recipe.Recipe) {
	c := p.paint(p.Out)
	fmt.Fprintln(p.Out, c.bold(r.Title))
	if len(r.Lines)+len(r.Flags) == 0 {
		fmt.Fprintln(p.Out, "\nNo variable and no flag is needed.")
	}
	line := func(head string, off bool, why, source string, conf recipe.Confidence) {
		if off {
			head += "  " + "(off)"
		}
		fmt.Fprintln(p.Out, "\n"+c.accent(head))
		fmt.Fprintln(p.Out, wrap(why, "  ", 100))
		fmt.Fprintln(p.Out, c.dim("  "+string(conf)+": "+source))
	}
	for _, l := range r.Lines {
		head := l.Var + "=" + l.Value
		if l.Unset {
			head = "unset " + l.Var
		}
		line(head, l.Off, l.Why, l.Source, l.Confidence)
	}
	for _, l := range r.Flags {
		line(strings.TrimSpace(l.Name+" "+l.Value), false, l.Why, l.Source, l.Confidence)
	}
	if len(r.Limits) > 0 {
		fmt.Fprintln(p.Out, "\n"+c.bold("Limits"))
		for _, l := range r.Limits {
			v := fmt.Sprint(l.Value)
			if l.Value >= 1<<20 {
				v = size(l.Value)
			}
			fmt.Fprintf(p.Out, "  %s: %s\n%s\n", l.Name, v, wrap(l.Why, "    ", 100))
		}
	}
	if len(r.Notes) > 0 {
		fmt.Fprintln(p.Out, "\n"+c.bold("Notes"))
		for _, n := range r.Notes {
			fmt.Fprintln(p.Out, wrap(n.Text, "  ", 100))
			fmt.Fprintln(p.Out, c.dim("  "+string(n.Confidence)+": "+n.Source))
		}
	}
	if len(r.LeftOut) > 0 {
		fmt.Fprintln(p.Out, "\n"+c.bold("Left out of the reports"))
		for _, l := range r.LeftOut {
			fmt.Fprintf(p.Out, "  %s=%s\n%s\n", l.Var, l.Value, wrap(l.Why, "    ", 100))
		}
	}
}
