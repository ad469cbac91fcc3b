// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe-engine runs probes by the packages that agents run them with and nothing else, and prints what that
// cost as JSON. Where the probes go is said on the command line.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/bellwether-dev/bellwether/testbed/bench/probes"
)

func main() {
	debug.SetGCPercent(50) // as in an agent
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "probe-engine:", err)
		os.Exit(1) //nolint:gocritic // stop only restores the signals
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("probe-engine", flag.ContinueOnError)
	var l probes.Load
	flags.IntVar(&l.Probes, "probes", 5000, "number of probes")
	flags.DurationVar(&l.Interval, "interval", 0, "interval of each")
	flags.DurationVar(&l.Timeout, "timeout", 0, "timeout of each")
	flags.DurationVar(&l.For, "for", 0, "how long to run them")
	flags.StringVar(&l.Targets.Plain, "plain", "", "URL of a server without TLS")
	flags.StringVar(&l.Targets.Secure, "secure", "", "URL of a server with TLS")
	flags.StringVar(&l.Targets.Silent, "silent", "", "URL of a server that never answers")
	flags.StringVar(&l.Targets.Closed, "closed", "", "URL where nobody listens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	result, err := probes.Run(ctx, l)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}
