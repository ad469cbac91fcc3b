// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bellwether is what a person, or a CI job, uses to work with the
// fleet. Installed as kubectl-bellwether it is a kubectl plugin.
package main

import (
	"os"
	_ "time/tzdata" // an image, and Windows, have none

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/root"
)

func main() {
	os.Exit(root.Main(os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}))
}
