// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

func TestPatchStatus(t *testing.T) {
	of, broken := schema.GroupResource{Resource: "pagingpolicies"}, errors.New("broken")
	for name, test := range map[string]struct {
		answer  error
		same    bool
		writes  int
		written bool
		want    error
	}{
		"nothing changed": {same: true},
		"written":         {writes: 1, written: true},
		"changed since":   {answer: apierrors.NewConflict(of, "p", broken), writes: 1},
		"gone":            {answer: apierrors.NewNotFound(of, "p"), writes: 1},
		"broken":          {answer: broken, writes: 1, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			writes := 0
			answer := func(context.Context, client.Client, string, client.Object, client.Patch,
				...client.SubResourcePatchOption) error {
				writes++
				return test.answer
			}
			c := fake.NewClientBuilder().WithScheme(scheme).
				WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: answer}).Build()
			before := &v1alpha1.PagingPolicy{}
			before.Namespace, before.Name, before.ResourceVersion = "n", "p", "7"
			after := before.DeepCopy()
			if !test.same {
				after.Status.Operators = 3
			}
			written, err := PatchStatus(t.Context(), c, before, after)
			if written != test.written || !errors.Is(err, test.want) || writes != test.writes {
				t.Errorf("written %t, error %v after %d writes; want %t, %v, %d", written, err, writes, test.written,
					test.want, test.writes)
			}
		})
	}
}
