// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package pin_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/conditions"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/bundles"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/pin"
)

const line = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n"

// packageOf returns the package echo; rollbacks are added to its bundles by version.
func packageOf(t testing.TB, notation string, rollbacks map[string]bundles.Rollback) map[string]*catalogs.Package {
	t.Helper()
	p, err := catalogs.ReadPackage(catalogs.SingleFile("test", strings.NewReader(catalogtest.Graph("echo", notation))),
		"echo")
	if err != nil {
		t.Fatal(err)
	}
	for version, way := range rollbacks {
		value, err := json.Marshal([]bundles.Rollback{way})
		if err != nil {
			t.Fatal(err)
		}
		b := p.Bundles["echo.v"+version]
		b.Properties = append(b.Properties, bundles.Property{Type: bundles.PropertyRollback, Value: value})
	}
	return map[string]*catalogs.Package{"echo": p}
}

// user returns a user of the package echo on clusters, each as "name=version".
func user(clusters ...string) []pin.User {
	u := pin.User{Package: "echo"}
	for _, c := range clusters {
		name, version, _ := strings.Cut(c, "=")
		i := pin.Install{Cluster: name}
		if version != "" {
			i.Installed = catalogs.Installed{Name: "echo.v" + version, Version: version}
		}
		u.Installs = append(u.Installs, i)
	}
	return []pin.User{u}
}

// inUse is a catalog that has been read.
func inUse(blocks ...v1alpha1.VersionBlock) *v1alpha1.OperatorCatalog {
	source := v1alpha1.CatalogSource{Image: "registry.example.com/catalog:latest"}
	return &v1alpha1.OperatorCatalog{
		Spec: v1alpha1.OperatorCatalogSpec{Source: source, Blocks: blocks},
		Status: v1alpha1.OperatorCatalogStatus{
			Digest: "sha256:1", Source: &source, PackageCount: 1, Packages: []v1alpha1.CatalogPackage{{Name: "echo"}},
		},
	}
}

func block(version string) v1alpha1.VersionBlock {
	return v1alpha1.VersionBlock{Package: "echo", Version: version, Reason: "it loses data"}
}

func TestStranding(t *testing.T) {
	tests := map[string]struct {
		catalog       *v1alpha1.OperatorCatalog
		before, after string
		marked        []catalogs.Block // of the new catalog
		users         []pin.User
		says          string // empty: it is adopted
	}{
		"all have a path": {before: line, after: line + "1.3.0 replaces 1.2.0", users: user("a=1.0.0", "b=1.2.0")},
		"a version lost its edge": {
			before: line, after: "1.1.0\n1.2.0 replaces 1.1.0", users: user("a=1.0.0", "b=1.2.0", "c=1.0.0"),
			says: "image registry.example.com/catalog:latest: sha256:2 would strand echo 1.0.0 on a, c (no upgrade " +
				"path",
		},
		"no cluster runs it": {before: line, after: "1.1.0\n1.2.0 replaces 1.1.0", users: user("a=1.1.0", "b=")},
		"the head is an older version": {
			before: line, after: "1.0.0\n1.1.0 replaces 1.0.0", users: user("a=1.2.0"),
			says: "would strand echo 1.2.0 on a",
		},
		"the newest version is blocked in the new catalog": {
			before: line, after: line, marked: []catalogs.Block{{Version: "1.2.0", Reason: "bad"}},
			users: user("a=1.2.0"),
		},
		"the newest version is missing, and blocked in the spec": {
			catalog: inUse(block("1.2.0")), before: line, after: "1.0.0\n1.1.0 replaces 1.0.0", users: user("a=1.2.0"),
		},
		"stranded before": {before: "1.1.0\n1.2.0 replaces 1.1.0",
			after: "1.1.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0", users: user("a=1.0.0")},
		"the package is missing": {
			before: line, users: user("a=1.0.0"), says: "the package is not in the catalog",
		},
		"the package is missing, and not installed": {before: line, users: user("a=")},
		"the channel is missing": {
			before: line, after: line, users: []pin.User{{Package: "echo", Channel: "fast",
				Installs: user("a=1.0.0")[0].Installs}},
			// The version had no path before either.
		},
		"the previous catalog cannot be read": {after: "1.1.0\n1.2.0 replaces 1.1.0", users: user("a=1.0.0"),
			says: "would strand echo 1.0.0"},
		"the first catalog is accepted as it is": {catalog: &v1alpha1.OperatorCatalog{},
			after: "1.1.0\n1.2.0 replaces 1.1.0", users: user("a=1.0.0")},
		"many versions": {
			before: "0.1.0\n0.2.0 replaces 0.1.0\n0.3.0 replaces 0.2.0\n0.4.0 replaces 0.3.0\n0.5.0 replaces 0.4.0",
			after:  "0.5.0",
			users:  user("a=0.1.0", "b=0.2.0", "c=0.3.0", "d=0.4.0"), says: "and 1 more",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := pin.Input{Now: now, Catalog: test.catalog, Digest: "sha256:2", Users: test.users,
				Summary: summary(catalogs.PackageSummary{Name: "echo"})}
			if in.Catalog == nil {
				in.Catalog = inUse()
			}
			if test.before != "" {
				in.InUse = packageOf(t, test.before, nil)
			}
			if test.after != "" {
				in.Candidate = packageOf(t, test.after, nil)
				p, err := in.Candidate["echo"].WithBlocked(test.marked...)
				if err != nil {
					t.Fatal(err)
				}
				in.Candidate["echo"] = p
			}
			before := in.Catalog.Status.Digest
			got := pin.Decide(in)
			ready := conditions.Get(got.Status.Conditions, v1alpha1.ConditionReady)
			if test.says == "" {
				if got.Status.Digest != "sha256:2" {
					t.Errorf("not adopted: %s %s", ready.Reason, ready.Message)
				}
				return
			}
			if ready.Reason != v1alpha1.ReasonWouldStrand || got.Status.Digest != before ||
				!conditions.IsTrue(got.Status.Conditions, v1alpha1.ConditionStalled) {
				t.Errorf("%s at %s: %s", ready.Reason, got.Status.Digest, ready.Message)
			}
			for _, part := range []string{test.says, "stays in use (sha256:1)",
				"upgrade path from these versions to the head"} {
				if !strings.Contains(ready.Message, part) {
					t.Errorf("message %q lacks %q", ready.Message, part)
				}
			}
		})
	}
}

func TestVersions(t *testing.T) {
	packages := packageOf(t, line, map[string]bundles.Rollback{"1.2.0": {From: "echo.v1.1.0",
		Class: bundles.RollbackInPlace, Reason: "no stored object changes"}})
	oldest := packages["echo"].Bundles["echo.v1.0.0"]
	oldest.Deprecation = "too old"
	oldest.Properties = append(oldest.Properties, bundles.Property{Type: bundles.PropertySupport,
		Value: []byte(`{"endOfSupport": "2027-06-30", "kubernetes": {"max": "1.37"}}`)})
	got := pin.Decide(pin.Input{
		Now: now, Catalog: inUse(block("1.1.0")), Digest: "sha256:1", InUse: packages,
		Users: user("a=1.2.0", "b=1.1.0", "c=1.2.0", "d=0.9.0", "e="),
	})
	want := []v1alpha1.CatalogVersion{
		{Bundle: "echo.v1.2.0", Version: "1.2.0", Clusters: 2, Rollbacks: []v1alpha1.CatalogRollback{
			{From: "echo.v1.1.0", Class: "in-place", Reason: "no stored object changes"}}},
		{Bundle: "echo.v1.1.0", Version: "1.1.0", Clusters: 1, Blocked: "it loses data"},
		{Bundle: "echo.v1.0.0", Version: "1.0.0", Deprecated: "too old", EndOfSupport: "2027-06-30",
			SupportedKubernetes: &v1alpha1.KubernetesRange{Max: "1.37"}},
		{Bundle: "echo.v0.9.0", Version: "0.9.0", Clusters: 1, Absent: true},
	}
	if diff := cmp.Diff(want, got.Status.Packages[0].Versions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// While the catalog cannot be read, the known versions stay, and clusters are counted.
func TestVersionsAreRemembered(t *testing.T) {
	catalog := inUse()
	catalog.Status = pin.Decide(pin.Input{Now: now, Catalog: catalog, Digest: "sha256:1",
		InUse: packageOf(t, line, nil),
		Users: user("a=1.0.0")}).Status
	got := pin.Decide(pin.Input{
		Now: now, Catalog: catalog, Failure: &pin.Failure{Reason: v1alpha1.ReasonCatalogUnreachable},
		Users: user("a=1.1.0", "b=1.1.0"),
	})
	counts := map[string]int32{}
	for _, v := range got.Status.Packages[0].Versions {
		counts[v.Version] = v.Clusters
	}
	if diff := cmp.Diff(map[string]int32{"1.0.0": 0, "1.1.0": 2, "1.2.0": 0}, counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	unused := pin.Decide(pin.Input{Now: now, Catalog: catalog, Digest: "sha256:1"})
	if v := unused.Status.Packages[0].Versions; v != nil {
		t.Errorf("no operator uses the package, but versions are %v", v)
	}
}

func TestBlockedVersions(t *testing.T) {
	instead := block("1.2.0")
	instead.Instead = "1.1.0"
	expired := block("1.1.0")
	expired.Expires = "2026-11-21"
	tomorrow := block("1.1.0")
	tomorrow.Expires = "2026-11-22"
	inPlace := map[string]bundles.Rollback{"1.2.0": {From: "echo.v1.1.0", Class: bundles.RollbackInPlace,
		Reason: "no stored object changes"}}
	oneWay := map[string]bundles.Rollback{"1.2.0": {From: "echo.v1.1.0", Class: bundles.RollbackOneWay,
		Reason: "a stored version was removed"}}
	tests := map[string]struct {
		blocks    []v1alpha1.VersionBlock
		rollbacks map[string]bundles.Rollback
		marked    []catalogs.Block
		users     []pin.User
		want      []string
		condition string
	}{
		"nothing blocked": {users: user("a=1.2.0")},
		"a cluster runs it, and a newer version is not blocked": {
			blocks: []v1alpha1.VersionBlock{block("1.1.0")}, users: user("b=1.1.0", "a=1.1.0", "c=1.0.0"),
			want:      []string{"echo 1.1.0 Spec 2 [a b] upgrade to 1.2.0"},
			condition: "2 clusters run echo 1.1.0, which is blocked (it loses data): a, b; upgrade to 1.2.0",
		},
		"no cluster runs it": {
			blocks: []v1alpha1.VersionBlock{block("1.1.0")}, users: user("c=1.0.0"),
			want: []string{"echo 1.1.0 Spec 0 [] upgrade to 1.2.0"},
		},
		"the head, with a rollback": {
			blocks: []v1alpha1.VersionBlock{block("1.2.0")}, rollbacks: inPlace, users: user("a=1.2.0"),
			want: []string{"echo 1.2.0 Spec 1 [a] there is no newer version that is not blocked: publish one, or " +
				"roll back to echo.v1.1.0 (in-place): no stored object changes"},
			condition: "1 cluster runs echo 1.2.0, which is blocked (it loses data): a; there is no newer version " +
				"that is not blocked",
		},
		"the head, without a rollback": {
			blocks: []v1alpha1.VersionBlock{block("1.2.0")}, rollbacks: oneWay, users: user("a=1.2.0"),
			want: []string{"echo 1.2.0 Spec 1 [a] there is no newer version that is not blocked: publish one; " +
				"a rollback is not possible: a stored version was removed"},
			condition: "1 cluster runs",
		},
		"the block names another version": {
			blocks: []v1alpha1.VersionBlock{instead}, users: user("a=1.2.0"),
			want: []string{"echo 1.2.0 Spec 1 [a] use 1.1.0 instead"}, condition: "use 1.1.0 instead",
		},
		"blocked by the catalog": {
			marked: []catalogs.Block{{Version: "1.1.0", Reason: "bad"}}, users: user("a=1.1.0"),
			want: []string{"echo 1.1.0 Catalog 1 [a] upgrade to 1.2.0"}, condition: "which is blocked (bad)",
		},
		"expired": {
			blocks: []v1alpha1.VersionBlock{expired}, users: user(),
			want: []string{"echo 1.1.0 Spec expired 0 [] upgrade to 1.2.0"},
		},
		"not expired": {
			blocks: []v1alpha1.VersionBlock{tomorrow}, users: user(),
			want: []string{"echo 1.1.0 Spec 0 [] upgrade to 1.2.0"},
		},
		"a package that is not used": {
			blocks: []v1alpha1.VersionBlock{{Package: "other", Version: "1.0.0", Reason: "bad"}},
			want:   []string{"other 1.0.0 Spec 0 [] "},
		},
		"an unknown version": {
			blocks: []v1alpha1.VersionBlock{block("9.9.9")}, users: user("a=1.0.0"),
			want: []string{"echo 9.9.9 Spec 0 [] the catalog has no such version, and no cluster runs it"},
		},
		"the most used first": {
			blocks: []v1alpha1.VersionBlock{block("1.0.0"), block("1.1.0")}, users: user("a=1.1.0"),
			want:      []string{"echo 1.1.0 Spec 1 [a] upgrade to 1.2.0", "echo 1.0.0 Spec 0 [] upgrade to 1.2.0"},
			condition: "1 cluster runs echo 1.1.0",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			packages := packageOf(t, line, test.rollbacks)
			p, err := packages["echo"].WithBlocked(test.marked...)
			if err != nil {
				t.Fatal(err)
			}
			packages["echo"] = p
			got := pin.Decide(pin.Input{Now: now, Catalog: inUse(test.blocks...), Digest: "sha256:1", InUse: packages,
				Users: test.users})
			var versions []string
			for _, b := range got.Status.BlockedVersions {
				origin := string(b.Origin)
				if b.Expired {
					origin += " expired"
				}
				versions = append(versions, fmt.Sprintf("%s %s %s %d %v %s", b.Package, b.Version, origin, b.Clusters,
					b.ClusterNames, b.Proposal))
			}
			if diff := cmp.Diff(test.want, versions); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			c := conditions.Get(got.Status.Conditions, v1alpha1.ConditionBlockedVersionInUse)
			if (c.Status == "True") != (test.condition != "") || !strings.Contains(c.Message, test.condition) {
				t.Errorf("condition %q %q, want %q", c.Status, c.Message, test.condition)
			}
			if hit := len(got.Events) > 0; hit != (test.condition != "") {
				t.Errorf("events: %v", got.Events)
			}
		})
	}
}

// A block is reported once, not at each reconcile.
func TestBlocksAreReportedOnce(t *testing.T) {
	in := pin.Input{Now: now, Catalog: inUse(block("1.1.0")), Digest: "sha256:1", InUse: packageOf(t, line, nil),
		Users: user("a=1.0.0")}
	for i, step := range []struct {
		users []pin.User
		want  int
	}{{user("a=1.0.0"), 0}, {user("a=1.1.0"), 1}, {user("a=1.1.0", "b=1.1.0"), 0}, {user("a=1.2.0"), 0},
		{user("a=1.1.0"), 1}} {
		in.Users = step.users
		got := pin.Decide(in)
		if len(got.Events) != step.want {
			t.Errorf("step %d: events %v, want %d", i, got.Events, step.want)
		}
		in.Catalog.Status = got.Status
	}
}

// A catalog that blocks its head does not have the bundle, but clusters on it need its rollbacks.
func TestRollbacksAreRemembered(t *testing.T) {
	catalog := inUse()
	before := packageOf(t, line, map[string]bundles.Rollback{"1.2.0": {From: "echo.v1.1.0",
		Class: bundles.RollbackNeedsBackup, Reason: "a field is new"}})
	catalog.Status = pin.Decide(pin.Input{Now: now, Catalog: catalog, Digest: "sha256:1", InUse: before,
		Users: user("a=1.2.0")}).Status
	after := packageOf(t, line, nil)
	var err error
	if after["echo"], err = after["echo"].WithBlocked(catalogs.Block{Version: "1.2.0", Reason: "bad"}); err != nil {
		t.Fatal(err)
	}
	in := pin.Input{
		Now: now, Catalog: catalog, Digest: "sha256:2", Summary: summary(catalogs.PackageSummary{Name: "echo"}),
		InUse: before, Candidate: after, Users: user("a=1.2.0"),
	}
	for range 2 { // it stays known
		got := pin.Decide(in)
		want := v1alpha1.CatalogVersion{
			Bundle: "echo.v1.2.0", Version: "1.2.0", Clusters: 1, Blocked: "bad",
			Rollbacks: []v1alpha1.CatalogRollback{{From: "echo.v1.1.0", Class: "needs-backup",
				Reason: "a field is new"}},
		}
		if diff := cmp.Diff(want, got.Status.Packages[0].Versions[0]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if p := got.Status.BlockedVersions[0].Proposal; !strings.Contains(p,
			"or roll back to echo.v1.1.0 (needs-backup): a field is new") {
			t.Errorf("proposal %q", p)
		}
		in.Catalog.Status, in.Digest, in.Summary, in.InUse = got.Status, "sha256:2", nil, after
	}
}

func TestExpiryIsNoticed(t *testing.T) {
	b := block("1.1.0")
	b.Expires = "2026-11-22"
	catalog := inUse(b)
	catalog.Spec.Source.Image = "registry.example.com/catalog@sha256:1"
	catalog.Status.Source = &catalog.Spec.Source
	in := pin.Input{Now: now, Catalog: catalog, Digest: "sha256:1", InUse: packageOf(t, line, nil), Users: user()}
	got := pin.Decide(in)
	if want := midnight.Sub(now); got.RecheckAfter != want {
		t.Errorf("recheck after %s, want %s", got.RecheckAfter, want)
	}
	in.Now = midnight
	ready := conditions.Get(pin.Decide(in).Status.Conditions, v1alpha1.ConditionReady)
	if want := "blocks that have expired and stay in force: echo 1.1.0 (2026-11-22)"; !strings.Contains(
		ready.Message, want) {
		t.Errorf("message %q lacks %q", ready.Message, want)
	}
}

func TestVersionsStayWithinTheAPI(t *testing.T) {
	var notation strings.Builder
	var running []string
	notation.WriteString("1.0.0\n")
	for i := 1; i < 300; i++ {
		fmt.Fprintf(&notation, "1.%d.0 replaces 1.%d.0\n", i, i-1)
	}
	for i := range 30 {
		running = append(running, fmt.Sprintf("c%02d=1.5.0", i))
	}
	got := pin.Decide(pin.Input{
		Now: now, Catalog: inUse(block("1.5.0")), Digest: "sha256:1", InUse: packageOf(t, notation.String(), nil),
		Users: user(running...),
	})
	p := got.Status.Packages[0]
	if len(p.Versions) != pin.MaxVersions || p.OmittedVersions != 200 {
		t.Errorf("%d versions, %d omitted", len(p.Versions), p.OmittedVersions)
	}
	if first, last := p.Versions[0], p.Versions[pin.MaxVersions-1]; first.Version != "1.299.0" ||
		last.Version != "1.5.0" || last.Clusters != 30 {
		t.Errorf("from %+v to %+v", first, last)
	}
	if b := got.Status.BlockedVersions[0]; len(b.ClusterNames) != 20 || b.Clusters != 30 {
		t.Errorf("%d names of %d clusters", len(b.ClusterNames), b.Clusters)
	}
	if m := conditions.Get(got.Status.Conditions, v1alpha1.ConditionBlockedVersionInUse).Message; !strings.Contains(m,
		"30 clusters run echo 1.5.0, which is blocked (it loses data), among them c00, c01, c02; upgrade to 1.299.0") {
		t.Error(m)
	}
}
