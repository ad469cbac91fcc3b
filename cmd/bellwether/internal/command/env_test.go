// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestNearestCommand(t *testing.T) {
	run := func(*cobra.Command, []string) {}
	c := &cobra.Command{Use: "catalog"}
	for _, name := range []string{"add", "diff", "edit", "init", "publish", "push", "show", "slow", "silence"} {
		c.AddCommand(&cobra.Command{Use: name, Run: run})
	}
	for typed, want := range map[string]string{
		"pus":     "push",
		"PUBLISH": "publish",
		"edif":    "edit",
		"dif":     "diff",
		"int":     "init",
		"sho":     "show",
		"slo":     "slow",
		"s":       "show", // as long as slow
		"si":      "silence",
		"shwo":    "show",
		"remove":  "",
	} {
		if got := findNearestCommand(c, typed); got != want {
			t.Errorf("%s: nearest is %q, want %q", typed, got, want)
		}
	}
}
