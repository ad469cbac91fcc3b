// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/cmd/bellwether/internal/clitest"
)

// deselected is a fleet with an operator that two of three clusters are to lose.
func deselected(unconfirmed int32) *clitest.Hub {
	o := clitest.Operator("echo", "1.1.0")
	o.Spec.ClusterSelector = metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	o.Spec.RemovalPolicy = v1alpha1.RemovalUninstall
	o.Status.Removal = &v1alpha1.RemovalProgress{Request: "12345678", Unconfirmed: unconfirmed}
	if unconfirmed == 0 {
		o.Status.Removal = nil
	}
	objects := []client.Object{o, clitest.Cluster("a", nil), clitest.Cluster("b", nil),
		clitest.Cluster("c", map[string]string{"env": "prod"})}
	reference := v1alpha1.OperatorReference{Namespace: "default", Name: "echo"}
	for _, cluster := range []string{"a", "b", "c"} {
		objects = append(objects, &v1alpha1.OperatorInstall{ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.ClusterNamespace(cluster), Name: reference.InstallName(), Labels: reference.Labels()},
			Spec: v1alpha1.OperatorInstallSpec{Cluster: cluster, Operator: reference}})
	}
	return clitest.NewHub(objects...)
}

// TestConfirmRemovalAsks checks that the confirmation names the clusters, and that it requires the right.
func TestConfirmRemovalAsks(t *testing.T) {
	const what = "This uninstalls operator echo from 2 clusters: a, b.\n"
	for name, c := range map[string]struct {
		unconfirmed int32
		args        string
		answer      string
		denied      []string
		code        int
		says        string
	}{
		"without a terminal":    {unconfirmed: 2, code: 1, says: what},
		"with the flag":         {unconfirmed: 2, args: "--yes", says: what},
		"a yes":                 {unconfirmed: 2, answer: "yes\n", says: "Continue? [y/N]"},
		"a no":                  {unconfirmed: 2, answer: "no\n", code: 1, says: "not confirmed, and nothing was changed"},
		"other clusters by now": {unconfirmed: 3, args: "--clusters 3", code: 1, says: "from 3 clusters.\n"},
		"another number":        {unconfirmed: 2, args: "--clusters 3", code: 1, says: "from 2 clusters, not from 3"},
		"nothing waits":         {args: "--yes", code: 1, says: "no removal of operator echo waits"},
		"without the right": {unconfirmed: 2, args: "--yes", denied: []string{"remove managedoperators"}, code: 1,
			says: "ClusterRole bellwether-remove"},
	} {
		t.Run(name, func(t *testing.T) {
			h := deselected(c.unconfirmed)
			h.Answer, h.Denied = c.answer, c.denied
			got := h.Run(t, append(strings.Fields("operator confirm-removal echo --clusters 2"),
				strings.Fields(c.args)...)...)
			if got.Code != c.code || !strings.Contains(got.Out+got.Err, c.says) {
				t.Errorf("it ends with %d, want %d and %q:\n%s%s", got.Code, c.code, c.says, got.Out, got.Err)
			}
			o := &v1alpha1.ManagedOperator{}
			if err := h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "echo"}, o); err != nil {
				t.Fatal(err)
			}
			if confirmed := o.Spec.Removal != nil && o.Spec.Removal.Confirm == "12345678"; confirmed != (c.code == 0) {
				t.Errorf("confirmed = %v", confirmed)
			}
		})
	}
}
