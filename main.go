// Outcrop runs mixture-of-experts language models bigger than the graphics
// card. Without arguments it opens the window; README.md lists the commands.
package main

func main() {}
