// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tiers runs this repository's tests by tier.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/build"
	"github.com/bellwether-dev/bellwether/testbed/tiers"
)

// errTable says that the table of tests is not current.
var errTable = errors.New("testbed/tiers/tests.txt does not agree with the tests of the tree")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal has the tests stop what they started; a second one ends the program at once.
	context.AfterFunc(ctx, stop)
	if err := newRoot().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "tiers:", err)
		os.Exit(1)
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "tiers",
		Short:         "Run this repository's tests by tier",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newRun(), newChanged(), newStress(), newVerify(), newTimes())
	return root
}

// workspace is the tree whose tests run, and where results are kept between runs.
type workspace struct{ root, state string }

func openWorkspace() (workspace, error) {
	root, err := build.Root()
	if err != nil {
		return workspace{}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return workspace{}, fmt.Errorf("find cache folder: %w", err)
	}
	return workspace{root: root, state: filepath.Join(cache, "bellwether", "ci")}, nil
}

func (w workspace) loadTimes() (*tiers.Times, error) {
	return tiers.LoadTimes(filepath.Join(w.state, "times.json"))
}

// verify prints what is wrong with the table of tests: what it lacks would not run.
func (w workspace) verify(out io.Writer) error {
	wrong, err := tiers.Verify(w.root)
	if err != nil {
		return err
	}
	for _, line := range wrong {
		_, _ = fmt.Fprintln(out, line)
	}
	if len(wrong) > 0 {
		return errTable
	}
	return nil
}

// load returns the table of tests, and what runs them with flags for the go command.
func (w workspace) load(parallel int, flags []string) (tiers.Runner, []tiers.Entry, error) {
	if err := w.verify(os.Stderr); err != nil {
		return tiers.Runner{}, nil, err
	}
	entries, err := tiers.Table()
	if err != nil {
		return tiers.Runner{}, nil, err
	}
	times, err := w.loadTimes()
	if err != nil {
		return tiers.Runner{}, nil, err
	}
	report := tiers.NewReport(os.Stdout)
	return tiers.Runner{
		Test: tiers.GoTest{Root: w.root, Flags: flags, Out: report}.Run,
		Components: func(ctx context.Context) error {
			_, err := build.Ensure(ctx, report, build.Everyday()...)
			return err
		},
		Parallel: parallel, Report: report, Times: times,
	}, entries, nil
}

func newVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Fail if the table of tests does not agree with the tree",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := openWorkspace()
			if err != nil {
				return err
			}
			return w.verify(cmd.OutOrStdout())
		},
	}
}

func newTimes() *cobra.Command {
	n := 0
	cmd := &cobra.Command{
		Use:   "times",
		Short: "Print how long packages and tests took when they ran last on this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w, err := openWorkspace()
			if err != nil {
				return err
			}
			times, err := w.loadTimes()
			if err != nil {
				return err
			}
			return times.Print(cmd.OutOrStdout(), n)
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 40, "how many packages, and how many tests")
	return cmd
}
