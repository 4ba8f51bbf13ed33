package cli

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"outcrop/engine/catalog"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

func (p *Program) runCommand() *cobra.Command {
	var f recipeFlags
	var show bool
	var keep string
	c := &cobra.Command{
		Use: "run [flags] -- PROGRAM [ARGS]", Short: "Start another program with the card's recipe in its environment",
		Long: "Applies the recipe of the target (llama.cpp, strata, ...) to the environment and starts the program. Its exit\n" +
			"code is ours. Flags of the recipe are not added to its arguments; outcrop recipe --for lists them.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := f.make()
			if err != nil {
				return err
			}
			if show {
				for _, l := range r.Lines {
					switch {
					case l.Off:
					case l.Unset:
						fmt.Fprintln(p.Err, "unset", l.Var)
					default:
						fmt.Fprintf(p.Err, "%s=%s\n", l.Var, l.Value)
					}
				}
			}
			// The program sits in our terminal group and gets Ctrl-C itself;
			// we only wait for what it makes of it.
			sig := make(chan os.Signal, 1)
			signal.Notify(sig, os.Interrupt)
			defer signal.Stop(sig)
			here, fsys, live, err := gpu.Open("")
			if err != nil {
				return fmt.Errorf("read the machine: %w", err)
			}
			if keep == "" {
				keep = filepath.Join(catalog.DataDir(), "runs", time.Now().Format("2006-01-02-150405"))
				if err := os.MkdirAll(keep, 0o700); err != nil {
					// A full disk or a home that cannot be written is no reason
					// against the program: nobody asked for the record.
					fmt.Fprintln(p.Err, "outcrop: this run is not kept:", err)
					keep = ""
				}
			} else if keep == "none" {
				keep = ""
			}
			end, err := r.Run(c.Context(), recipe.Job{Args: args, In: p.In, Out: p.Out, Err: p.Err, Keep: keep, Machine: here, Root: fsys, Live: live})
			if err != nil {
				return fmt.Errorf("start %s: %w", args[0], err)
			}
			if end.Code == 0 {
				return nil
			}
			text := end.Text
			if keep != "" {
				text += "; its output and the readings are in " + keep
			}
			return &exitCode{end.Code, text}
		},
	}
	f.add(c)
	c.Flags().BoolVar(&show, "show", false, "print the variables first, on standard error")
	c.Flags().StringVar(&keep, "keep", "", "folder for the output and the readings of RAM, pressure and cards (default: a new one under the data folder; none keeps nothing)")
	c.Flags().SetInterspersed(false)
	return c
}

// exitCode hands another program's exit code on.
type exitCode struct {
	code int // -1: a signal ended it
	text string
}

func (e *exitCode) Error() string { return e.text }
