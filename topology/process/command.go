package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Command is a program, or a command of one.
type Command struct {
	// Name is the binary's name, or the word that calls the command.
	Name string
	// Args names the arguments that it takes, one word each, such as "FILE".
	Args []string
	// Short is its line in the list of commands.
	Short string
	// About is the text of --help: what it reads, writes and promises.
	About string
	// Flags registers its flags, with usage texts that give unit and meaning. May be
	// nil.
	Flags func(*Flags)
	// Check refuses what the flags gave, before anything starts. May be nil.
	Check func() error
	// Run does the work; nil where it only has commands. The context ends at the first
	// signal.
	Run func(context.Context, *Life) error
	// Commands are called by their names, behind this one's.
	Commands []Command

	// Serves: it works until it is stopped, has health and a ready file, and a signal
	// is how it ends well.
	Serves bool
	// HTTPAddr is where a program that serves listens unless told otherwise; empty: a
	// free port. HTTPServes names what else it serves there, for the help.
	HTTPAddr, HTTPServes string
	// OwnHealth: it serves health and metrics itself, at an address of its own, and has
	// no --http-addr.
	OwnHealth bool
	// LogLevel is the default of --log-level; empty: info where it serves, else warn.
	LogLevel string
	// StopsItself: Run sees to the second signal itself (Life.Hard); the third ends
	// the process.
	StopsItself bool
	// PassesOn: whatever follows the name, flags too, is Run's to read in Life.Args.
	PassesOn bool
	// Exits are the exit codes of errors of the program's own. Those of the program
	// are its commands', too.
	Exits []Exit
}

func (c *Command) logLevel() string {
	switch {
	case c.LogLevel != "":
		return c.LogLevel
	case c.Serves:
		return "info"
	}
	return "warn"
}

func (c *Command) use() string { return strings.Join(append([]string{c.Name}, c.Args...), " ") }

// System is what a process gets from the operating system, as values.
type System struct {
	// Args are the arguments behind the program's name.
	Args []string
	// Environ looks a variable up. Nil: there are none.
	Environ        func(string) (string, bool)
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal
}

// Main runs a program and returns its exit code; it is all of main:
//
//	func main() { os.Exit(process.Main(program())) }
func Main(c Command) int {
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	return Run(c, System{
		Args: os.Args[1:], Environ: os.LookupEnv,
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
	})
}

// Run is Main on another System.
func Run(c Command, sys System) int {
	call := newCall(c, sys)
	return call.report(call.execute(&c))
}

// Execute is Run without the last word: it returns the error that Run reports.
func Execute(c Command, sys System) error { return newCall(c, sys).execute(&c) }

func newCall(c Command, sys System) *call {
	if sys.Environ == nil {
		sys.Environ = func(string) (string, bool) { return "", false }
	}
	return &call{System: sys, path: c.Name, exits: c.Exits}
}

func (c *call) execute(cmd *Command) error {
	root := c.build(cmd)
	root.SetArgs(c.Args)
	root.SetIn(c.Stdin)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root.Execute()
}

// call is one run of a program.
type call struct {
	System
	// path is the command that was found, with the names before it.
	path  string
	exits []Exit
	// logged: the error stands in the log.
	logged bool
}

// build makes the parser of a command and its commands.
func (c *call) build(cmd *Command) *cobra.Command {
	flags, common := &Flags{}, &common{}
	if cmd.Flags != nil {
		cmd.Flags(flags)
	}
	common.register(flags.Group("Process"), cmd)
	parser := &cobra.Command{
		Use: cmd.Name, SilenceErrors: true, SilenceUsage: true, DisableFlagParsing: cmd.PassesOn,
		Args: func(parser *cobra.Command, args []string) error {
			c.path = parser.CommandPath()
			return cmd.checkArgs(parser, args)
		},
		RunE: func(parser *cobra.Command, args []string) error {
			if common.version {
				fmt.Fprintln(c.Stdout, parser.Root().Name(), Version())
				return nil
			}
			if cmd.Run == nil {
				fmt.Fprint(c.Stdout, help(cmd, c.path, flags))
				return nil
			}
			return c.run(cmd, flags, common, args)
		},
	}
	parser.SetFlagErrorFunc(func(parser *cobra.Command, err error) error {
		c.path = parser.CommandPath()
		return Usage(err)
	})
	parser.SetHelpFunc(func(parser *cobra.Command, _ []string) {
		fmt.Fprint(c.Stdout, help(cmd, parser.CommandPath(), flags))
	})
	parser.Flags().SortFlags = false
	parser.Flags().AddFlagSet(flags.all())
	for i := range cmd.Commands {
		parser.AddCommand(c.build(&cmd.Commands[i]))
	}
	return parser
}

// checkArgs refuses arguments that are not those of the command.
func (c *Command) checkArgs(parser *cobra.Command, args []string) error {
	switch {
	case c.PassesOn || len(args) == len(c.Args):
		return nil
	case len(c.Args) > 0:
		return Usage(fmt.Errorf("want %s, got %d arguments", strings.Join(c.Args, " and "), len(args)))
	case len(c.Commands) == 0:
		return Usage(fmt.Errorf("argument %q is not understood: flags start with --", args[0]))
	}
	var names []string
	for _, sub := range c.Commands {
		names = append(names, sub.Name)
	}
	said := fmt.Sprintf("unknown command %q: flags start with --, and the commands are %s", args[0], strings.Join(names, ", "))
	parser.SuggestionsMinimumDistance = 2
	if like := parser.SuggestionsFor(args[0]); len(like) > 0 {
		said += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return Usage(errors.New(said))
}

// report says why the program ends, where that is not plain, and gives the code.
func (c *call) report(err error) int {
	code := ExitCode(err, c.exits...)
	if code == ExitOK || errors.As(err, new(Status)) {
		return code
	}
	if !c.logged {
		fmt.Fprintf(c.Stderr, "%s: %s\n", c.path, printable(err.Error()))
	}
	if errors.Is(err, ErrUsage) {
		fmt.Fprintf(c.Stderr, "%s: see %s --help\n", c.path, c.path)
	}
	return code
}
