// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"encoding/json"
	"fmt"
	"path"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/bundles/bundletest"
	"github.com/bellwether-dev/bellwether/bundles/crd"
)

// Changes between two published versions of an operator are also found between the reduced versions.
func TestReducedBundlesCompareAlike(t *testing.T) {
	byOperator := map[string][]*bundles.Bundle{}
	for _, name := range bundletest.Names(t) {
		byOperator[path.Dir(name)] = append(byOperator[path.Dir(name)], bundletest.Read(t, name))
	}
	crds := bundletest.NestedCRDs{Count: 2, Versions: 2, Bytes: 100 << 10, Seed: 3}
	byOperator["nested"] = []*bundles.Bundle{nestedBundle(t, crds, 0), nestedBundle(t, crds, 20)}
	found := 0
	for operator, versions := range byOperator {
		archive := crd.NewArchive()
		for _, older := range versions {
			for _, newer := range versions {
				reduced := archive.Reduce(older)
				for _, d := range crd.Definitions(newer) {
					want := crd.ListBreaks(crd.FindPublished([]*bundles.Bundle{older}, d.Name), d)
					got := crd.ListBreaks(crd.FindPublished([]*bundles.Bundle{reduced}, d.Name), archive.Definition(d))
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s, from %s to %s: %s", operator, older.Name, newer.Name, diff)
					}
					if diff := cmp.Diff(crd.ListDivergences(d),
						crd.ListDivergences(archive.Definition(d))); diff != "" {
						t.Errorf("%s, %s: %s", operator, d.Name, diff)
					}
					if diff := cmp.Diff(crd.ListRefusals(d), crd.ListRefusals(archive.Definition(d))); diff != "" {
						t.Errorf("%s, %s: %s", operator, d.Name, diff)
					}
					found += len(want)
				}
			}
		}
	}
	if found == 0 {
		t.Error("there are no breaks, so nothing was compared")
	}
}

func TestReducedBundle(t *testing.T) {
	// This version has a definition of v1beta1.
	b := bundletest.Read(t, "etcd/0.9.2")
	got := crd.NewArchive().Reduce(b)
	if _, err := got.Manifests(); err == nil {
		t.Error("a reduced bundle has manifests")
	}
	if _, err := b.Manifests(); err != nil {
		t.Errorf("the bundle itself was changed: %v", err)
	}
	if len(crd.Definitions(b)) == 0 {
		t.Fatal("the bundle has no definition")
	}
	if diff := cmp.Diff(len(crd.Definitions(b)), len(crd.Definitions(got))); diff != "" {
		t.Errorf("definitions: %s", diff)
	}
	for i, o := range b.Objects {
		if !o.SameText(got.Objects[i]) || !got.Objects[i].SameText(o) {
			t.Errorf("%s is not the same text any more", o.GetName())
		}
		reduced := got.Objects[i]
		if reduced.GetKind() != o.GetKind() || reduced.GetName() != o.GetName() {
			t.Errorf("%s %s became %s %s", o.GetKind(), o.GetName(), reduced.GetKind(), reduced.GetName())
		}
	}
	if diff := cmp.Diff(b.CSV.Spec.InstallStrategy, got.CSV.Spec.InstallStrategy, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the deployments: %s", diff)
	}
}

// The memory of a version depends on its differences to earlier versions. The memory is measured after garbage
// collection, so the result does not depend on the machine.
func TestArchiveIsSmall(t *testing.T) {
	const versions = 20
	crds := bundletest.NestedCRDs{Count: 2, Versions: 2, Bytes: 300 << 10, Seed: 1}
	archive := crd.NewArchive()
	var kept []*bundles.Bundle
	before := liveBytes()
	kept = append(kept, archive.Reduce(nestedBundle(t, crds, 0)))
	first := liveBytes() - before
	for j := 1; j < versions; j++ {
		kept = append(kept, archive.Reduce(nestedBundle(t, crds, j)))
	}
	each := (liveBytes() - before - first) / (versions - 1)
	whole := nestedBundle(t, crds, 0)
	full := liveBytes() - before - first - each*(versions-1)
	t.Logf("the first version takes %d KiB, each further one %d KiB; decoded it is %d KiB", first>>10, each>>10,
		full>>10)
	if each > full/10 {
		t.Errorf("a further version takes %d bytes, more than a tenth of the %d bytes that it is decoded", each, full)
	}
	runtime.KeepAlive(archive)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(whole)
}

func liveBytes() int64 {
	runtime.GC()
	runtime.GC() // what the first one found may still be swept
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func nestedBundle(t *testing.T, n bundletest.NestedCRDs, j int) *bundles.Bundle {
	t.Helper()
	version := fmt.Sprintf("1.%d.0", j)
	objects := append([]map[string]any{{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": "nested.v" + version}, "spec": map[string]any{"version": version},
	}}, n.Generate("nested.example.com", j)...)
	var manifests [][]byte
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, raw)
	}
	b, err := bundles.FromManifests(manifests, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
