// Outcrop runs mixture-of-experts language models bigger than the graphics
// card. Without arguments it opens the window; README.md lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"outcrop/app/cli"
	"outcrop/app/desktop"
	"outcrop/gpu"
)

// version is set by the Makefile: -ldflags "-X main.version=...".
var version = ""

func main() {
	if gpu.HelperMain(os.Args) { // this process is a sensor helper of another
		return
	}
	os.Exit(cli.Main(context.Background(), cli.Program{
		Version: versionText(),
		In:      os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Window: window,
	}, os.Args[1:]))
}

// window opens the desktop's window.
func window(w cli.WindowArgs) error {
	err := desktop.Run(desktop.Args{Pack: w.Pack, Page: w.Page, Root: w.Root, Version: versionText()})
	if errors.Is(err, desktop.ErrNoWindow) {
		return fmt.Errorf("%w: %w", cli.ErrNoWindow, err)
	}
	return err
}

// versionText is the version that was built in, else the revision.
func versionText() string {
	if version != "" {
		return version
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				return "dev-" + s.Value[:12]
			}
		}
	}
	return "dev"
}
