package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/spf13/cobra"
)

func (p *Program) runCommand() *cobra.Command {
	var f recipeFlags
	var show bool
	c := &cobra.Command{
		Use: "run [flags] -- PROGRAM [ARGS]", Short: "Start another program with the card's recipe in its environment",
		Long: "Applies the recipe of the target (llama.cpp, strata, ...) to the environment and starts the program. Its exit\n" +
			"code is ours. Flags of the recipe are not added to its arguments; outcrop recipe --target lists them.",
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
			cmd := exec.CommandContext(c.Context(), args[0], args[1:]...)
			cmd.Env = r.Apply(os.Environ())
			cmd.Stdin, cmd.Stdout, cmd.Stderr = p.In, p.Out, p.Err
			// The program sits in our terminal group and gets Ctrl-C itself;
			// we only wait for what it makes of it.
			sig := make(chan os.Signal, 1)
			signal.Notify(sig, os.Interrupt)
			defer signal.Stop(sig)
			err = cmd.Run()
			var x *exec.ExitError
			if errors.As(err, &x) {
				return &exitCode{x.ExitCode(), fmt.Sprintf("%s: %v", args[0], x)}
			}
			if err != nil {
				return fmt.Errorf("start %s: %w", args[0], err)
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().BoolVar(&show, "show", false, "print the variables first, on standard error")
	c.Flags().SetInterspersed(false)
	return c
}

// exitCode hands another program's exit code on.
type exitCode struct {
	code int // -1: a signal ended it
	text string
}

func (e *exitCode) Error() string { return e.text }
