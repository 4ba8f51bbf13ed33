// Package cli is Outcrop in a terminal: the same jobs as the window, one
// command a file. Commands that read a machine take --root, so that another
// machine's files can be looked at; commands whose result a script would read
// take --json. Exit codes: 0 good, 1 it did not work, 2 it was asked wrongly.
//
// chat starts the engine as a child process, as the window does; tokenize,
// logits, bench and packs inspect work on a pack directly.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"outcrop/engine/catalog"
)

// Program is what the commands run in. main makes one; tests make others.
type Program struct {
	Version string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	// Window opens the window and returns when it is closed. Its error wraps
	// ErrNoWindow when none can be opened here.
	Window func(w WindowArgs) error
	// Display says whether a display is there; nil looks at the environment.
	Display func() bool
	// Terminal says whether a person sits at In and Out; nil asks the system.
	Terminal func() bool
	// Catalog is the list of packs; nil is the user's own.
	Catalog *catalog.Catalog
	// Self is the program to start as the engine; "" is this one.
	Self string
}

// WindowArgs is what the window is told.
type WindowArgs struct{ Pack, Page, Root string }

// ErrNoWindow says that no window can be opened here.
var ErrNoWindow = errors.New("no window here")

// usageError is a command that was asked wrongly: exit code 2.
type usageError struct {
	err error
	cmd string // the command whose help tells more
}

func (u *usageError) Error() string { return u.err.Error() }
func (u *usageError) Unwrap() error { return u.err }

// errSilent is a failure whose text has been printed.
var errSilent = errors.New("failed")

// Main runs one command line and returns the exit code.
func Main(ctx context.Context, p Program, args []string) int {
	if n := catalog.HomeNote(); n != "" {
		fmt.Fprintln(p.Err, "outcrop: note: "+n)
	}
	root := p.root()
	root.SetArgs(args)
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	err := root.ExecuteContext(ctx)
	var u *usageError
	var x *exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &u):
		fmt.Fprintf(p.Err, "outcrop: %s\nSee '%s --help'.\n", visible(err.Error()), u.cmd)
		return 2
	case strings.HasPrefix(err.Error(), "unknown command"):
		fmt.Fprintf(p.Err, "outcrop: %s\n", visible(err.Error()))
		return 2
	case errors.Is(err, errSilent):
	case errors.As(err, &x):
		fmt.Fprintf(p.Err, "outcrop: %s\n", visible(err.Error()))
		if x.code > 0 {
			return x.code
		}
	default:
		fmt.Fprintf(p.Err, "outcrop: %s\n", visible(err.Error()))
	}
	return 1
}

// pages are the window's, by the names that --page takes.
var pages = []string{"chat", "packs", "card", "monitor", "serve", "settings"}

func (p *Program) root() *cobra.Command {
	var w WindowArgs
	root := &cobra.Command{
		Use:   "outcrop [pack]",
		Short: "Run mixture-of-experts language models bigger than the graphics card",
		Long: "Outcrop runs language models bigger than the graphics card, and shows where they lie and how fast they are.\n" +
			"Without a command it opens the window; where there is no display, the chat starts in the terminal.\n" +
			"Nothing leaves the machine unless you fetch a pack.",
		Args:          p.oneFile,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				w.Pack = args[0]
			}
			if w.Page != "" && !slices.Contains(pages, w.Page) {
				return usage(c, "--page %s: want one of %v", w.Page, pages)
			}
			return p.start(c, w)
		},
	}
	root.Flags().StringVar(&w.Page, "page", "", "page to open first: "+strings.Join(pages, ", "))
	root.Flags().StringVar(&w.Root, "root", "", rootHelp)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(
		p.chatCommand(), p.serveCommand(), p.packsCommand(),
		p.cardsCommand(), p.recipeCommand(), p.doctorCommand(), p.planCommand(), p.runCommand(),
		p.benchCommand(), p.monitorCommand(),
		p.tokenizeCommand(), p.detokenizeCommand(), p.logitsCommand(),
		p.machineCommand(), p.versionCommand(),
	)
	mend(root)
	return root
}

// mend gives every command our kind of usage errors.
func mend(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, "%w", err) })
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				var u *usageError
				if errors.As(err, &u) || strings.HasPrefix(err.Error(), "unknown command") {
					return err
				}
				return usage(c, "%w", err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		mend(sub)
	}
}

func usage(c *cobra.Command, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), c.CommandPath()}
}

const rootHelp = "read another machine: a folder that holds its sys, proc and dev, or a machine file"

// oneFile accepts no argument or a file to open, so that a mistyped command is
// not taken for a pack.
func (p *Program) oneFile(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) == 1:
		if _, err := os.Stat(args[0]); err == nil {
			return nil
		}
		if _, err := p.packs().Get(args[0]); err == nil {
			return nil
		}
	}
	msg := fmt.Sprintf("unknown command %q", args[0])
	if s := c.SuggestionsFor(args[0]); len(s) > 0 {
		msg += "; did you mean " + strings.Join(s, " or ") + "?"
	}
	return usage(c, "%s", msg)
}

// start opens the window, or says why not and starts the chat.
func (p *Program) start(c *cobra.Command, w WindowArgs) error {
	why := "No display was found (neither WAYLAND_DISPLAY nor DISPLAY is set)"
	if p.display() && p.Window != nil {
		dir, done, err := machineDir(w.Root) // a machine file is unpacked for the time
		if err != nil {
			return err
		}
		defer done()
		shown := w
		shown.Root = dir
		err = p.Window(shown)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNoWindow) {
			return err
		}
		why = "The window cannot open: " + strings.ReplaceAll(err.Error(), ErrNoWindow.Error()+": ", "")
	}
	if !p.terminal() {
		return usage(c, "%s, and this is no terminal either; use outcrop chat --prompt TEXT, or outcrop serve", lowerFirst(why))
	}
	fmt.Fprintf(p.Err, "%s, so the chat starts here in the terminal.\n\n", why)
	return p.chat(c.Context(), chatOptions{pack: w.Pack, root: w.Root})
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

func (p *Program) display() bool {
	if p.Display != nil {
		return p.Display()
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return true
	}
	return os.Getenv("WAYLAND_DISPLAY") != "" || os.Getenv("DISPLAY") != ""
}

func (p *Program) terminal() bool {
	if p.Terminal != nil {
		return p.Terminal()
	}
	return isTerminal(p.In) && isTerminal(p.Out)
}

func isTerminal(x any) bool {
	f, ok := x.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

func (p *Program) packs() *catalog.Catalog {
	if p.Catalog != nil {
		return p.Catalog
	}
	return catalog.Open()
}

// packNames completes a PACK argument.
func (p *Program) packNames(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, _ := p.packs().List()
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out, cobra.ShellCompDirectiveDefault
}
