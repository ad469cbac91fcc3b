// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command run builds a command of the testbed together with everything that this command uses, tells meanwhile how much
// is left, and becomes that command. It imports little, so that it is there at once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/bellwether-dev/bellwether/testbed/build"
)

const usage = `Build a command of the testbed with all that it uses, and run it.

Usage:
  run demo [FLAGS]            the demo
  run components [NAME...]    build upstream's components only, and print their paths
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if ctx.Err() != nil {
			fmt.Fprintln(os.Stderr, "run: interrupted; what is built already stays in the cache")
			os.Exit(130) //nolint:gocritic // stop only restores the signals
		}
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		_, err := fmt.Print(usage)
		return err
	}
	switch args[0] {
	case build.Demo:
		return demo(ctx, args[1:])
	case "components":
		return components(ctx, args[1:])
	default:
		return fmt.Errorf("find command %q: %w\n\n%s", args[0], build.ErrUnknown, usage)
	}
}

// demo builds the demo and becomes it.
func demo(ctx context.Context, args []string) error {
	path, err := build.Prepare(ctx, os.Stdout, build.OfDemo(), append(build.Platform(), build.PodRunner), build.Demo)
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, append([]string{path}, args...), os.Environ()); err != nil {
		return fmt.Errorf("start the demo: %w", err)
	}
	return nil
}

// components builds upstream's components into the user's cache, and prints their paths.
func components(ctx context.Context, names []string) error {
	if len(names) == 0 {
		names = build.Everyday()
	}
	paths, err := build.Ensure(ctx, os.Stderr, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		if _, err := fmt.Println(paths[name]); err != nil {
			return fmt.Errorf("print path: %w", err)
		}
	}
	return nil
}
