// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command slo-peers prepares the data of the benchmark of SLO rules: it writes the benchmark's objectives as sloth and
// pyrra read them, and packs the rules that these make of them. It does not run them; bench/slo/testdata/README.md says
// how to.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/bellwether-dev/bellwether/testbed/bench/slo"
)

func main() {
	specs := flag.String("specs", "", "write the objectives into this folder, below sloth, sloth-fleet and pyrra")
	rules := flag.String("rules", "", "pack the rule files that are in this folder, below sloth, sloth-fleet and pyrra")
	to := flag.String("to", "bench/slo/testdata", "folder of the benchmark's data")
	flag.Parse()
	if err := run(*specs, *rules, *to); err != nil {
		fmt.Fprintln(os.Stderr, "slo-peers:", err)
		os.Exit(1)
	}
}

func run(specs, rules, to string) error {
	switch {
	case specs != "" && rules == "":
		return slo.WriteSpecs(specs, slo.Operators)
	case rules != "" && specs == "":
		return slo.CollectRules(rules, to)
	}
	return errors.New("give either --specs or --rules")
}
