// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/fixture"
)

// waiting is a hub with an operator of which 1.3.0 waits for an approval.
func waiting() (*clitest.Hub, *v1alpha1.ManagedOperator) {
	o := clitest.Operator("echo", "1.1.0")
	o.Spec.Version = ">=1.0.0 <2.0.0"
	o.Spec.Updates = &v1alpha1.VersionUpdates{Minor: v1alpha1.UpdateApproval}
	o.Status.Target = &v1alpha1.TargetVersion{Version: "1.1.0", Channel: "stable",
		Reason: `the highest version in ">=1.0.0 <2.0.0" that may be rolled out`}
	o.Status.Available = &v1alpha1.AvailableVersion{Version: "1.3.0", Update: v1alpha1.UpdateMinor,
		Since:  metav1.NewTime(fixture.Noon),
		Reason: "1.3.0 is a minor update of 1.1.0, and spec.updates.minor is Approval"}
	return clitest.NewHub(o), o
}

func TestApprove(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		change func(*v1alpha1.ManagedOperator)
		denied []string
		code   int
		says   string
	}{
		"what waits": {args: []string{"1.3.0", "--reason", "tested"},
			says: "Operator echo: version 1.3.0 is approved by anna.\n"},
		"a version below": {args: []string{"1.2.0", "--reason", "tested"},
			says: "Version 1.3.0 still waits for an approval.\n"},
		"without a reason":  {args: []string{"1.3.0"}, code: 1, says: "no reason given"},
		"no version":        {args: []string{"1.x", "--reason", "tested"}, code: 1, says: `"1.x" is not a version`},
		"above what waits":  {args: []string{"1.4.0", "--reason", "tested"}, code: 1, says: "is higher than 1.3.0"},
		"below what runs":   {args: []string{"1.1.0", "--reason", "tested"}, code: 1, says: "is not higher than 1.1.0"},
		"outside the range": {args: []string{"1.2.0-rc.1", "--reason", "tested"}, code: 1, says: "is not in the range"},
		"the channel's head": {args: []string{"1.3.0", "--reason", "tested"},
			change: func(o *v1alpha1.ManagedOperator) { o.Spec.Version = "" }, says: "is approved by anna"},
		"nothing waits": {args: []string{"1.3.0", "--reason", "tested"}, code: 1,
			change: func(o *v1alpha1.ManagedOperator) { o.Status.Available = nil },
			says:   "no version of operator echo waits for an approval"},
		"without the right": {args: []string{"1.3.0", "--reason", "tested"}, code: 1,
			denied: []string{"approve managedoperators"}, says: "ClusterRole bellwether-approve"},
	} {
		t.Run(name, func(t *testing.T) {
			_, o := waiting()
			if c.change != nil {
				c.change(o)
			}
			h := clitest.NewHub(o)
			h.Denied = c.denied
			got := h.Run(t, append([]string{"operator", "approve", "echo"}, c.args...)...)
			if got.Code != c.code || !strings.Contains(got.Out+got.Err, c.says) {
				t.Errorf("it ends with %d, want %d and %q:\n%s%s", got.Code, c.code, c.says, got.Out, got.Err)
			}
			after := &v1alpha1.ManagedOperator{}
			if err := h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "echo"}, after); err != nil {
				t.Fatal(err)
			}
			want := o.Spec.Updates.DeepCopy()
			if c.code == 0 {
				want.Approved = &v1alpha1.VersionApproval{Version: c.args[0], By: "anna", Reason: "tested",
					At: metav1.NewTime(fixture.Noon)}
			}
			if diff := cmp.Diff(want, after.Spec.Updates); diff != "" {
				t.Errorf("updates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestWhatWaitsIsShown checks that lists mark an operator with a version that waits for approval, and that the
// details show the reason and the command.
func TestWhatWaitsIsShown(t *testing.T) {
	h, _ := waiting()
	for args, want := range map[string]string{
		"operator list":                "update",
		"operator list --state update": "echo",
		"operator get echo":            "`bellwether operator approve echo 1.3.0 --reason TEXT`",
	} {
		if got := h.Run(t, strings.Fields(args)...); got.Code != 0 || !strings.Contains(got.Out, want) {
			t.Errorf("%s has no %q:\n%s%s", args, want, got.Out, got.Err)
		}
	}
}
