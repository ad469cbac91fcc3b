// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bellwether-dev/bellwether/testbed/fleet"
	"github.com/bellwether-dev/bellwether/testbed/runs"
)

const (
	downLimit = time.Minute
	downPoll  = 100 * time.Millisecond
)

func newDown(name *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop a fleet and remove all it left, including what killed runs left behind",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return down(cmd.Context(), cmd.OutOrStdout(), *name)
		},
	}
}

func down(ctx context.Context, out io.Writer, name string) error {
	state, err := fleet.Read(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		say(out, "no fleet %s is up\n", name)
		return runs.Sweep(ctx)
	case err != nil:
		return err
	}
	began := time.Now()
	if state.Owner.Alive() {
		if err := syscall.Kill(state.Owner.PID, syscall.SIGTERM); err != nil {
			return fmt.Errorf("signal owner of fleet %s: %w", name, err)
		}
	}
	if err := waitGone(ctx, name); err != nil {
		return err
	}
	if err := runs.Sweep(ctx); err != nil {
		return err
	}
	say(out, "fleet %s stopped in %s\n", name, time.Since(began).Round(100*time.Millisecond))
	return nil
}

// waitGone waits until nobody owns the fleet any more.
func waitGone(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, downLimit)
	defer cancel()
	ticker := time.NewTicker(downPoll)
	defer ticker.Stop()
	for {
		if _, up := runs.Folder(name); !up {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for fleet %s to stop: %w", name, ctx.Err())
		case <-ticker.C:
		}
	}
}
