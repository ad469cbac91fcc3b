// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
	"github.com/bellwether-dev/bellwether/catalogs/oci"
	"github.com/bellwether-dev/bellwether/explain/remedy"
)

func TestWay(t *testing.T) {
	const ladder = "1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0\n1.3.0 replaces 1.2.0"
	echo := func(version string) catalogs.Installed {
		return catalogs.Installed{Name: "echo.v" + version, Version: version}
	}
	tests := map[string]struct {
		installed catalogs.Installed
		underWay  string // takes the place of what is installed
		target    string
		blocked   []string
		path      []string
		next      string
		says      string
	}{
		"no block": {installed: echo("1.0.0"), target: "1.2.0",
			path: []string{"echo.v1.1.0", "echo.v1.2.0"}, next: "echo.v1.1.0"},
		"around a blocked version": {installed: echo("1.0.0"), target: "1.2.0",
			blocked: []string{"1.1.0"}, path: []string{"echo.v1.2.0"}, next: "echo.v1.2.0"},
		"around two": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.1.0", "1.2.0"}, path: []string{"echo.v1.3.0"}, next: "echo.v1.3.0"},
		"away from a blocked one": {installed: echo("1.1.0"), target: "1.2.0",
			blocked: []string{"1.1.0"}, path: []string{"echo.v1.2.0"}, next: "echo.v1.2.0"},
		"a fresh install": {target: "1.3.0", blocked: []string{"1.1.0"},
			path: []string{"echo.v1.3.0"}, next: "echo.v1.3.0"},
		"to a blocked one": {installed: echo("1.0.0"), target: "1.1.0",
			blocked: []string{"1.1.0"}, says: "Version 1.1.0, which was admitted, is blocked: it is bad"},
		"to a blocked head": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.3.0"}, says: "Version 1.3.0, which was admitted, is blocked"},
		"a fresh install of a blocked one": {target: "1.3.0", blocked: []string{"1.3.0"},
			says: "which was admitted, is blocked"},
		"it is there already": {installed: echo("1.3.0"), target: "1.3.0",
			blocked: []string{"1.3.0"}, says: "It stays until another version is admitted"},
		"from a blocked head back to the good one": {installed: echo("1.3.0"), target: "1.2.0",
			blocked: []string{"1.3.0"},
			says:    "Version 1.3.0, which runs, is blocked: it is bad. Nothing leads from it to 1.2.0"},
		"everything is blocked": {installed: echo("1.0.0"), target: "1.3.0",
			blocked: []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0"}, says: "leave nothing to install"},
		"what OLM has begun finishes, and goes on": {installed: echo("1.0.0"), underWay: "1.1.0",
			target: "1.2.0", blocked: []string{"1.1.0"}, path: []string{"echo.v1.1.0", "echo.v1.2.0"},
			next: "echo.v1.1.0"},
		"what OLM has begun finishes, and goes no further": {installed: echo("1.0.0"), underWay: "1.1.0",
			target: "1.1.0", blocked: []string{"1.1.0"}, path: []string{"echo.v1.1.0"}, next: "echo.v1.1.0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pkg, err := catalogs.ReadPackage(catalogs.SingleFile("test",
				strings.NewReader(catalogtest.Graph("echo", ladder))), "echo")
			if err != nil {
				t.Fatal(err)
			}
			oi := &v1alpha1.OperatorInstall{}
			oi.Spec.Admission = &v1alpha1.Admission{Release: v1alpha1.Release{
				Package: "echo", Channel: "stable", Version: test.target, Bundle: "echo.v" + test.target,
			}}
			for _, v := range test.blocked {
				oi.Spec.Blocks = append(oi.Spec.Blocks,
					v1alpha1.VersionBlock{Package: "echo", Version: v, Reason: "it is bad."})
			}
			s := &seen{}
			s.Install = oi
			q := question{installed: test.installed, advance: true}
			if test.underWay != "" {
				q = question{installed: echo(test.underWay), before: test.installed, underWay: "echo.v" + test.underWay}
			}
			if _, _, err := s.way(pkg, q); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.path, s.Offer.Path); diff != "" {
				t.Errorf("path (-want +got):\n%s", diff)
			}
			if s.Offer.Next != test.next || !strings.Contains(s.Offer.Blocked, test.says) ||
				(s.Offer.Blocked == "") != (test.says == "") {
				t.Errorf("next %q, blocked %q; want %q, %q", s.Offer.Next, s.Offer.Blocked, test.next, test.says)
			}
		})
	}
}

// Whatever an answer depends on is part of the question, or it would be kept
// too long.
func TestQuestionsDiffer(t *testing.T) {
	given := func(change func(*v1alpha1.OperatorInstall)) question {
		oi := &v1alpha1.OperatorInstall{}
		oi.Spec.Admission = &v1alpha1.Admission{Release: v1alpha1.Release{Package: "echo"}}
		change(oi)
		s := &seen{}
		s.Install = oi
		return ask(s)
	}
	questions := map[question]string{}
	for name, change := range map[string]func(*v1alpha1.OperatorInstall){
		"plain":          func(*v1alpha1.OperatorInstall) {},
		"another digest": func(oi *v1alpha1.OperatorInstall) { oi.Spec.Admission.Release.Catalog.Digest = "sha256:1" },
		"a key":          func(oi *v1alpha1.OperatorInstall) { oi.Spec.Admission.Release.Catalog.PublicKeys = []string{"key"} },
		"a block": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: "1.0.0", Reason: "bad"}}
		},
		"another reason": func(oi *v1alpha1.OperatorInstall) {
			oi.Spec.Blocks = []v1alpha1.VersionBlock{{Package: "echo", Version: "1.0.0", Reason: "worse"}}
		},
	} {
		q := given(change)
		if other, same := questions[q]; same {
			t.Errorf("%s is the same question as %s", name, other)
		}
		questions[q] = name
	}
}

func TestProblemsSayWhatToDo(t *testing.T) {
	for reason, err := range map[string]error{
		v1alpha1.ReasonSignatureMissing:   oci.ErrUnsigned,
		v1alpha1.ReasonSignatureInvalid:   oci.ErrBadSignature,
		v1alpha1.ReasonAccessDenied:       oci.ErrDenied,
		v1alpha1.ReasonNoUpgradePath:      catalogs.ErrNoPath,
		v1alpha1.ReasonCatalogUnreachable: oci.ErrUnreachable,
	} {
		p := problem(fmt.Errorf("read package: %w", err))
		advice := remedy.Advice(reason, remedy.Agent, remedy.Names{})
		if p.Reason != reason || !strings.HasPrefix(p.Message, "read package: ") ||
			!strings.HasSuffix(p.Message, advice) || advice == "" {
			t.Errorf("%v: %s %q", err, p.Reason, p.Message)
		}
	}
}
