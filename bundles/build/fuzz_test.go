// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/build"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// FuzzAssemble builds bundles from random manifests. The result is an ErrInput, or a bundle that package bundles can
// read, whose files stay in their folder, that is the same in a second run, and that can be pinned.
func FuzzAssemble(f *testing.F) {
	objects, err := build.BuildKustomization("testdata/kustomize")
	if err != nil {
		f.Fatal(err)
	}
	var all []byte
	for _, o := range objects {
		all = append(append(all, "---\n"...), o.Text...)
	}
	f.Add(all)
	f.Add([]byte(join(deployment, role("{kind: ServiceAccount, name: sa}"), csv)))
	f.Add([]byte(deployment +
		"---\napiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}, 3]\n"))
	f.Add([]byte(deployment + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../up, annotations: 3}\n"))
	f.Add([]byte(deployment + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: 7\n"))
	f.Add([]byte(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": ` +
		`{"name": "x"}, "spec": {"install": null}}`))
	f.Add([]byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: " +
		"{conversion: {strategy: Webhook, webhook: {clientConfig: {}}}, versions: [{}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 32<<20, 16<<10, func() {
			if err := assembles(text); err != nil {
				t.Error(err)
			}
		})
	})
}

func assembles(text []byte) error {
	o := build.Options{Package: "p", Version: "1.0.0", LeaveOut: []string{"Job"}}
	r, err := build.Assemble([]build.Source{{Name: "fuzz", Text: text}}, o)
	if err != nil {
		if !errors.Is(err, build.ErrInput) {
			return fmt.Errorf("not an ErrInput: %w", err)
		}
		return nil
	}
	again, err := build.Assemble([]build.Source{{Name: "fuzz", Text: text}}, o)
	if err != nil {
		return fmt.Errorf("the second time: %w", err)
	}
	if diff := cmp.Diff(texts(r.Files), texts(again.Files)); diff != "" {
		return fmt.Errorf("the second time it is another bundle:\n%s", diff)
	}
	tree := fstest.MapFS{}
	for name, content := range r.Files {
		folder, _, _ := strings.Cut(name, "/")
		if !fs.ValidPath(name) || folder != "manifests" && folder != "metadata" && folder != "tests" {
			return fmt.Errorf("a file is called %q", name)
		}
		tree[name] = &fstest.MapFile{Data: content}
	}
	b, err := bundles.Read(tree)
	if err != nil {
		return fmt.Errorf("the bundle cannot be read: %w", err)
	}
	if b.Name != r.Name || b.Name != "p.v1.0.0" {
		return fmt.Errorf("the bundle is %q and was built as %q", b.Name, r.Name)
	}
	digest := func(string) (string, error) { return "sha256:" + strings.Repeat("a", 64), nil }
	if _, err := r.Pin(digest); err != nil && !errors.Is(err, build.ErrInput) {
		return fmt.Errorf("pin: not an ErrInput: %w", err)
	}
	return nil
}
