// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/tiers"
)

func addParallel(cmd *cobra.Command, parallel *int) {
	cmd.Flags().IntVar(parallel, "parallel", 3, "test programs of the testbed that run at a time; they mostly wait")
}

func newRun() *cobra.Command {
	parallel, below := 0, ""
	cmd := &cobra.Command{
		Use:   "run TIER [-- FLAG...]",
		Short: "Run all tests of a tier; the flags go to go test",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := openWorkspace()
			if err != nil {
				return err
			}
			runner, entries, err := w.load(parallel, args[1:])
			if err != nil {
				return err
			}
			return runner.Run(cmd.Context(), tiers.Below(entries, below), tiers.Tier(args[0]))
		},
	}
	addParallel(cmd, &parallel)
	cmd.Flags().StringVar(&below, "below", "", "run only tests in this folder of the tree and below it")
	return cmd
}

func newChanged() *cobra.Command {
	parallel, limit := 0, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "changed TIER [-- FLAG...]",
		Short: "Run the tests of a tier whose inputs changed since they passed on this machine",
		Long: `Run the tests of a tier whose inputs changed since they passed on this machine.

A test that fails runs once more, alone. If it passes then, it is printed as FLAKY and counts as
passed; more than two of them fail the run. What has not ended when the time is up is printed as
NOT RUN and goes first in the next run; no package may be left twice.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := openWorkspace()
			if err != nil {
				return err
			}
			runner, entries, err := w.load(parallel, args[1:])
			if err != nil {
				return err
			}
			tier := tiers.Tier(args[0])
			inputs, err := tiers.LoadInputs(cmd.Context(), w.root, tiers.Folders(entries, tier))
			if err != nil {
				return err
			}
			changed := tiers.Changed{Runner: runner, Digest: inputs.Digest, State: filepath.Join(w.state, args[0]),
				Limit: limit}
			return changed.Run(cmd.Context(), entries, tier)
		},
	}
	addParallel(cmd, &parallel)
	cmd.Flags().DurationVar(&limit, "limit", time.Hour, "how long the run may take")
	return cmd
}

func newStress() *cobra.Command {
	parallel, n, tier := 0, 0, ""
	cmd := &cobra.Command{
		Use:   "stress [FOLDER...] [-- FLAG...]",
		Short: "Run the tests of a tier, or those of some packages, again and again on a busy machine",
		Long: `Run the tests of a tier, or those of some packages, again and again on a busy machine.

Another process for each processor keeps the machine busy meanwhile. How often each test passed is
printed at the end; a line for each run is added to stress.log in the cache folder.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			folders, flags := args, []string{}
			if at := cmd.ArgsLenAtDash(); at >= 0 {
				folders, flags = args[:at], args[at:]
			}
			w, err := openWorkspace()
			if err != nil {
				return err
			}
			runner, entries, err := w.load(parallel, append(flags, "-count=1"))
			if err != nil {
				return err
			}
			tree, err := w.tree(cmd)
			if err != nil {
				return err
			}
			stop, err := keepBusy(cmd)
			if err != nil {
				return err
			}
			defer stop()
			stress := tiers.Stress{Runner: runner, N: n, Log: filepath.Join(w.state, "stress.log"), Tree: tree}
			return stress.Run(cmd.Context(), entries, tiers.Tier(tier), folders)
		},
	}
	addParallel(cmd, &parallel)
	cmd.Flags().IntVarP(&n, "number", "n", 5, "how often the tests run")
	cmd.Flags().StringVar(&tier, "tier", string(tiers.Test), "tier of the tests: test or cluster")
	return cmd
}

// tree identifies what is tested by the tree of the last commit.
func (w workspace) tree(cmd *cobra.Command) (string, error) {
	git := exec.CommandContext(cmd.Context(), "git", "-C", w.root, "rev-parse", "HEAD^{tree}")
	out, err := git.Output()
	if err != nil {
		return "", fmt.Errorf("find the tree of the last commit: %w", err)
	}
	status, err := exec.CommandContext(cmd.Context(), "git", "-C", w.root, "status", "--porcelain").Output()
	if err != nil {
		return "", fmt.Errorf("find changes since the last commit: %w", err)
	}
	tree := strings.TrimSpace(string(out))
	if len(status) > 0 {
		tree += "+changes"
	}
	return tree, nil
}

// keepBusy starts a process for each processor that does nothing but compute, until the returned function is called.
func keepBusy(cmd *cobra.Command) (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, busy := range started {
			_ = busy.Process.Kill()
			_ = busy.Wait()
		}
	}
	for range runtime.NumCPU() {
		// It ends with this process.
		busy := exec.CommandContext(cmd.Context(), "sh", "-c", "while kill -0 $PPID; do :; done")
		if err := busy.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("keep a processor busy: %w", err)
		}
		started = append(started, busy)
	}
	return stop, nil
}
