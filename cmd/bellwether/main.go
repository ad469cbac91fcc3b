// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bellwether is the command line for the fleet, for people and CI jobs. Installed as kubectl-bellwether, it is
// a kubectl plugin.
package main

import (
	"os"
	_ "time/tzdata" // container images and Windows have no time zone database

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

func main() {
	os.Exit(root.Main(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
