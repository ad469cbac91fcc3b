// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package root

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestFenceIndented(t *testing.T) {
	child := &cobra.Command{Use: "child", Long: "Keys:\n  one\n\n  two\n\nExit codes:\n  0  yes\n  1  no"}
	root := &cobra.Command{Use: "root", Long: "Nothing is indented.\n\n- not even this"}
	root.AddCommand(child)
	fenceIndented(root)
	want := "Keys:\n```\n  one\n\n  two\n```\n\nExit codes:\n```\n  0  yes\n  1  no\n```"
	if diff := cmp.Diff(want, child.Long); diff != "" {
		t.Errorf("text of the child (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Nothing is indented.\n\n- not even this", root.Long); diff != "" {
		t.Errorf("text of the root (-want +got):\n%s", diff)
	}
}
