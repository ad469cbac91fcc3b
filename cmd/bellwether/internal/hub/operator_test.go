// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// TestOperatorNames has operators of one name in two namespaces.
func TestOperatorNames(t *testing.T) {
	operator := func(namespace, name string) client.Object {
		return &v1alpha1.ManagedOperator{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	rollout := &v1alpha1.OperatorRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "staging", Name: "backup-1"},
		Spec: v1alpha1.OperatorRolloutSpec{Operator: v1alpha1.LocalReference{Name: "backup"}}}
	objects := fake.NewClientBuilder().WithScheme(Scheme).WithObjects(operator("fleet", "echo"),
		operator("staging", "echo"), operator("staging", "backup"), rollout).Build()
	for name, test := range map[string]struct{ in, name, want, err string }{
		"in the namespace of the user": {in: "fleet", name: "echo", want: "fleet/echo"},
		"with another namespace":       {in: "fleet", name: "staging/echo", want: "staging/echo"},
		"unique in another namespace":  {in: "fleet", name: "backup", want: "staging/backup"},
		"of two other namespaces": {in: "default", name: "echo",
			err: `operators of 2 namespaces have the name "echo"`},
		"of no namespace": {in: "default", name: "other",
			err: `there is no operator "other" in namespace "default"`},
		"not in that namespace": {in: "default", name: "fleet/backup",
			err: `no operator "backup" in namespace "fleet"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Client{WithWatch: objects, Namespace: test.in}
			o, err := h.Operator(t.Context(), test.name)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q in it", err, test.err)
				}
				return
			}
			if err != nil || client.ObjectKeyFromObject(o).String() != test.want {
				t.Errorf("%v (%v), want %s", o, err, test.want)
			}
		})
	}
	h := &Client{WithWatch: objects, Namespace: "fleet"}
	if r, err := h.Rollout(t.Context(), "backup"); err != nil || r.Name != "backup-1" {
		t.Errorf("the rollout of backup is %v (%v)", r, err)
	}
	if _, err := h.Rollout(t.Context(), "default/echo"); err == nil {
		t.Error("an operator that does not exist has a rollout")
	}
}
